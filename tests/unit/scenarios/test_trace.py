"""Traces of real loads: three public forms, and the requests that replay them."""

import json

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.expansion import expand, list_due_s
from hybridwatch.scenarios.load import digest, load_scenario
from hybridwatch.scenarios.trace import Trace, read_trace
from hybridwatch.system.home import home
from tests.refusals import refusal
from tests.unit.scenarios.example import GOOD, WAVE, write

MOONCAKE = (
    {"timestamp": 27_000, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 48]},
    {"timestamp": 29_000, "input_length": 1030, "output_length": 0, "hash_ids": [46, 47, 49]},
)
SESSION = (
    {"session_id": "a", "timestamp": 0, "input_length": 30, "output_length": 8},
    {"session_id": "b", "timestamp": 500, "input_length": 20, "output_length": 4},
    {"session_id": "a", "delay": 2000, "input_length": 10, "output_length": 5},
    {"session_id": "a", "delay": 1000, "input_length": 6, "output_length": 5},
)
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
"""


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def read(tmp_path, text, name="t.jsonl", **more):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_trace(Trace(file=name, **more), [tmp_path])


def test_mooncakes_ids_are_texts_that_prompts_share(tmp_path):
    first, second = read(tmp_path, lines(MOONCAKE))
    assert (first.delay_s, second.delay_s) == (0.0, 2.0)
    assert (first.input_tokens, first.output_tokens) == (1100, 52)
    assert first.texts == (("block/46", 512), ("block/47", 512), ("block/48", 76))
    assert second.texts[:2] == first.texts[:2]
    assert second.output_tokens == 1, "no request asks for nothing"


def test_lengths_shrink_with_their_blocks_and_time_with_the_speed(tmp_path):
    first, second = read(tmp_path, lines(MOONCAKE), shrink=64, speed=4)
    assert second.delay_s == 0.5
    assert (first.input_tokens, first.output_tokens) == (18, 1)
    assert first.texts == (("block/46", 8), ("block/47", 8), ("block/48", 2))


def test_the_first_so_many_are_read(tmp_path):
    assert len(read(tmp_path, lines(MOONCAKE) + "no JSON\n", requests=2)) == 2


def test_aiperfs_turns_go_on_from_the_turn_before(tmp_path):
    found = read(tmp_path, lines(SESSION))
    assert [one.after for one in found] == [None, None, 0, 2]
    assert [one.delay_s for one in found] == [0, 0.5, 2, 1]
    assert [one.input_tokens for one in found] == [30, 20, 48, 59]
    assert found[3].texts == (("session/a", 59),)


def test_azures_table_has_times_and_lengths(tmp_path):
    first, second = read(tmp_path, AZURE, "t.csv")
    assert (first.delay_s, first.input_tokens, first.output_tokens) == (0, 4808, 10)
    assert (second.delay_s, second.texts) == (0.052, ())


@pytest.mark.parametrize(
    ("text", "name", "more", "line"),
    [
        ("[1]\n", "t.jsonl", {}, ":1: expected an object, found [1]"),
        ("\n{\n", "t.jsonl", {}, ":2: expected JSON"),
        ('{"messages": []}\n', "t.jsonl", {}, ":1: messages: expected none, since prompts"),
        ('{"timestamp": 0}\n', "t.jsonl", {}, ":1: input_length: missing; expected an integer"),
        (
            '{"timestamp": "0", "input_length": 1, "output_length": 1}',
            "t.jsonl",
            {},
            ':1: timestamp: expected a number from 0 to 1000000000000000.0, found "0"',
        ),
        (
            '{"delay": 5, "session_id": 1, "input_length": 1, "output_length": 1}',
            "t.jsonl",
            {},
            ":1: expected a timestamp, or a delay and an earlier turn of its session_id",
        ),
        (lines(MOONCAKE), "t.jsonl", {"requests": 3}, "expected at least 3 requests, found 2"),
        (lines(MOONCAKE), "t.jsonl", {"shrink": 3}, "shrink: expected a divisor of block_tokens"),
        ("", "t.jsonl", {}, "expected at least 1 requests, found 0"),
        ("TIMESTAMP,ContextTokens\n2023,1\n", "t.csv", {}, ":2: expected TIMESTAMP (a date"),
        (AZURE.replace(",10", ",x"), "t.csv", {}, ":2: expected TIMESTAMP (a date and a time)"),
    ],
)
def test_a_wrong_line_is_named_with_its_file(tmp_path, text, name, more, line):
    assert line in refusal(ScenarioError, read, tmp_path, text, name, **more)
    assert str(tmp_path) in refusal(ScenarioError, read, tmp_path, text, name, **more)


def scenario(tmp_path, rows, table="", waves=None):
    """Load the example with a trace in place of its waves and its load."""
    before, after = GOOD[: GOOD.index(WAVE)], GOOD[GOOD.index("[accuracy]") :]
    own = '[[workload.waves]]\narrival = "trace"\n' if waves is None else waves
    text = f'{before}[workload.trace]\nfile = "traces/t.jsonl"\n{table}\n{own}\n{after}'
    path, root = write(tmp_path, text)
    (root / "traces").mkdir(exist_ok=True)
    (root / "traces" / "t.jsonl").write_text(lines(rows), encoding="utf-8")
    return load_scenario(path, root)


SHORT = tuple(
    {**row, "input_length": tokens} for row, tokens in zip(MOONCAKE, (22, 20), strict=True)
)


def test_a_scenario_replays_its_trace_in_waves_and_load(tmp_path):
    found = scenario(tmp_path, SHORT, "block_tokens = 10\n")
    (wave,) = expand(found.workload.waves, found.workload.seed)
    load = found.workload.generation
    assert wave.arrival == "trace"
    assert [len(one.prompt) for one in wave.requests] == [22, 20]
    assert [one.delay_s for one in wave.requests] == [0.0, 2.0]
    first, second = (one.prompt for one in wave.requests)
    assert first[:20] == second[:20], "two ids are shared"
    assert (load.prompts, load.input_tokens, load.output_tokens) == (2, 22, 52)
    (timed,) = expand((load.replay,), load.seed)
    assert timed.requests == wave.requests, "the seed is the workload's"


def test_texts_hang_on_the_id_and_the_seed_alone(tmp_path):
    found = scenario(tmp_path, SHORT, "block_tokens = 10\n")
    again = scenario(tmp_path, SHORT[::-1], "block_tokens = 10\n")
    ours = {one.prompt[:20] for one in expand(found.workload.waves, 3)[0].requests}
    theirs = {one.prompt[:20] for one in expand(again.workload.waves, 3)[0].requests}
    assert ours == theirs
    assert ours != {one.prompt[:20] for one in expand(found.workload.waves, 4)[0].requests}


def test_a_turn_is_due_after_the_answer_before_it(tmp_path):
    (wave,) = expand(scenario(tmp_path, SESSION).workload.waves, 1)
    assert [one.after for one in wave.requests] == [None, None, 0, 2]
    assert list_due_s(wave.requests) == [0, 0.5, 2, 3]
    assert wave.requests[2].prompt[:30] == wave.requests[0].prompt


def test_another_trace_is_another_scenario_and_another_place_is_not(tmp_path):
    found = digest(scenario(tmp_path, SESSION))
    changed = [*SESSION[:-1], {**SESSION[-1], "output_length": 6}]
    assert digest(scenario(tmp_path, changed)) != found
    assert digest(scenario(tmp_path, SESSION, "requests = 4\n")) == found


@pytest.mark.parametrize(
    ("table", "waves", "line"),
    [
        ("speed = 0\n", None, "x.toml: workload.trace.speed: expected a number from 0.001"),
        ("sped = 2\n", None, "x.toml: workload.trace.sped: unknown key; did you mean"),
        (
            "",
            '[[workload.waves]]\narrival = "trace"\nrepeat = 2\n',
            "waves[0].repeat: expected none",
        ),
        (
            "",
            f"{WAVE}[workload.generation]\nprompts = 1\n",
            "workload.generation: expected slo alone",
        ),
    ],
)
def test_what_does_not_go_with_a_trace_is_refused(tmp_path, table, waves, line):
    assert line in refusal(ScenarioError, scenario, tmp_path, SESSION, table, waves)


def test_a_wave_of_a_trace_needs_one(tmp_path):
    text = GOOD.replace('arrival = "queue"\nmax_concurrency = 3\n', 'arrival = "trace"\n')
    found = refusal(ScenarioError, load_scenario, *write(tmp_path, text))
    assert '.arrival: expected "trace" with workload.trace, and with it alone' in found


def test_the_shipped_trace_shares_prefixes_within_chats_and_across_agents():
    root = home() / "scenarios"
    found = load_scenario(root / "curated" / "replayed-trace.toml", root)
    requests = found.workload.waves[0].trace
    named = [[name for name, _ in one.texts] for one in requests]
    chats = [names for names in named if len(names) < 6]
    agents = [names for names in named if len(names) >= 6]
    assert len({tuple(names[:6]) for names in agents}) == 1, "one text of rules"
    assert len(agents) + len(chats) == 29
    assert any(one[:1] == other[:1] for one in chats for other in chats if one is not other)


SWEEP = "\n[sweep]\nrequest_rate = [1, 2, 3]\n"


def test_a_sweep_has_its_own_loads_and_its_own_objective(tmp_path):
    wave = '[[workload.waves]]\narrival = "trace"\n'
    found = refusal(ScenarioError, scenario, tmp_path, SESSION, "", f"{wave}{SWEEP}")
    assert "x.toml: sweep: expected none with workload.trace" in found
    text = GOOD.replace(
        "[accuracy]", f"[workload.generation.slo]\nttft_ms = 5\n{SWEEP}[accuracy]", 1
    )
    found = refusal(ScenarioError, load_scenario, *write(tmp_path, text))
    assert "x.toml: sweep: expected none" in found
