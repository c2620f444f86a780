"""The trace that is shipped is what its recipe writes."""

import json
from itertools import pairwise

from hybridwatch.system.home import home
from hybridwatch_lab.traces.lateness import write_trace
from hybridwatch_lab.traces.make import BLOCK, SHAPES, make


def test_the_shipped_trace_is_made_by_its_recipe_byte_for_byte():
    file = home() / "scenarios" / "traces" / "chats-and-agents.jsonl"
    assert file.read_bytes() == make().encode("utf-8")
    assert make(21) != make()


def test_each_prompt_has_the_blocks_of_its_length_and_agents_share_theirs():
    rows = [json.loads(line) for line in make().splitlines()]
    assert all(len(row["hash_ids"]) == -(-row["input_length"] // BLOCK) for row in rows)
    assert all(one["timestamp"] <= other["timestamp"] for one, other in pairwise(rows))
    (agent,) = (shape for shape in SHAPES if shape.shared)
    rules = {tuple(row["hash_ids"][:6]) for row in rows if row["input_length"] > agent.shared}
    assert len(rules) == 1


def test_the_trace_of_a_measurement_takes_the_seconds_that_it_says(tmp_path):
    write_trace(tmp_path / "t.jsonl", 1000)
    last = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[-1])
    assert 18_000 < last["timestamp"] < 22_000, "20 ms on average"
