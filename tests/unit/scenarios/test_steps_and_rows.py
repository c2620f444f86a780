"""Waves whose requests differ row by row, come and go at engine steps, and are asked again."""

from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario
from tests.mistakes import read_mistakes
from tests.refusals import refusal
from tests.unit.scenarios import example
from tests.unit.scenarios.example import GOOD, WAVE

PLAIN = "[[workload.waves]]\nrequests = 3\ninput_tokens = 40\noutput_tokens = 8\n"


def load(tmp_path: Path, waves: str, engine: str = "") -> Scenario:
    """The example with other waves and further engine arguments."""
    text = GOOD.replace(WAVE, waves).replace(
        "max_num_seqs = 16\n", f"max_num_seqs = 16\n{engine}\n"
    )
    return example.load(tmp_path, text)


def planned(tmp_path: Path, waves: str, engine: str = "") -> tuple[PlannedWave, ...]:
    return expand(load(tmp_path, waves, engine).workload.waves, 5)


def wave(**changes: Any) -> Wave:
    content = {"requests": 3, "input_tokens": 40, "output_tokens": 8}
    return Wave.model_validate(content | changes)


def made(**changes: Any) -> PlannedWave:
    return expand([wave(**changes)], 5)[0]


def test_a_list_gives_each_request_its_length():
    rows = made(input_tokens=[20, 30, 40], output_tokens=[3, 2, 1])
    assert [len(request.prompt) for request in rows.requests] == [20, 30, 40]
    assert [request.max_tokens for request in rows.requests] == [3, 2, 1]


def test_a_request_has_the_same_text_whether_its_length_is_in_a_list_or_not():
    assert made(input_tokens=[40, 40, 40]).requests == made(input_tokens=40).requests


def test_a_prefix_is_cut_where_the_list_says():
    shared = made(input_tokens=40, shared_prefix_tokens=[0, 10, 30]).requests
    whole = made(input_tokens=40, shared_prefix_tokens=30).requests
    assert shared[1].prompt[:10] == whole[0].prompt[:10]
    assert shared[1].prompt[10:12] != whole[0].prompt[10:12]
    assert shared[2].prompt[:30] == whole[0].prompt[:30]
    assert shared[0].prompt[:4] != whole[0].prompt[:4]


def test_requests_come_and_go_at_steps():
    steps = made(arrival="steps", at_step=[0, 0, 12], aborts=[{"request": 1, "step": 6}])
    assert [request.at_step for request in steps.requests] == [0, 0, 12]
    assert [request.abort_at_step for request in steps.requests] == [None, 6, None]
    assert [request.has_right_answer for request in steps.requests] == [True, False, True]


def test_a_wave_that_is_left_by_a_client_counts_steps():
    assert made(aborts=[{"request": 0, "step": 1}]).arrival == "steps"
    assert made().arrival == "together"


def test_waves_that_overlap_are_one_with_later_steps():
    below = wave(arrival="steps", at_step=[0, 1, 2])
    above = wave(overlap_after_steps=4, aborts=[{"request": 0, "step": 3}])
    (both,) = expand([below, above], 5)
    assert [request.at_step for request in both.requests] == [0, 1, 2, 4, 4, 4]
    assert both.requests[3].abort_at_step == 7
    one, other = expand([below, wave()], 5)
    assert [r.prompt for r in both.requests] == [r.prompt for r in (*one.requests, *other.requests)]


def test_a_third_wave_overlaps_the_second_from_that_ones_begin_on():
    (all_three,) = expand([wave(), *2 * [wave(requests=1, overlap_after_steps=4)]], 5)
    assert [request.at_step for request in all_three.requests] == [0, 0, 0, 4, 8]


def test_again_asks_word_for_word_and_seed_for_seed(tmp_path):
    sampled = f"{PLAIN}temperature = 0.8\nsampling_seed = 3\n"
    more = '\n[[workload.waves]]\nagain = true\narrival = "queue"\nmax_concurrency = 1\n'
    first, second, third = planned(tmp_path, f"{sampled}{more}{more}token_budget = 16\n")
    assert second.again
    assert not first.again
    assert second.requests == first.requests == third.requests
    assert (second.arrival, second.max_concurrency) == ("queue", 1)
    assert (second.token_budget, third.token_budget) == (None, 16)
    assert [request.sampling_seed for request in first.requests] == [3, 4, 5]


def test_again_does_not_hand_on_aborts_and_steps(tmp_path):
    gone = 'arrival = "steps"\nat_step = [0, 1, 2]\naborts = [{ request = 0, step = 2 }]\n'
    first, second = planned(tmp_path, f"{PLAIN}{gone}\n[[workload.waves]]\nagain = true\n")
    assert first.requests[0].abort_at_step == 2
    assert {request.abort_at_step for request in second.requests} == {None}
    assert second.arrival == "together"


def test_priorities_are_one_for_all_or_one_for_each(tmp_path):
    policy = 'scheduling_policy = "priority"'
    (one,) = planned(tmp_path, f"{PLAIN}priority = -2\n", policy)
    (each,) = planned(tmp_path, f"{PLAIN}priority = [2, 0, 1]\n", policy)
    assert [request.priority for request in one.requests] == [-2, -2, -2]
    assert [request.priority for request in each.requests] == [2, 0, 1]


def test_lists_count_towards_the_longest_request_row_by_row(tmp_path):
    rows = PLAIN.replace("= 40", "= [1000, 40, 1]").replace("= 8", "= [24, 8, 1000]")
    load(tmp_path, rows)
    with pytest.raises(ScenarioError, match=r"input_tokens \+ output_tokens at most .* found 1025"):
        load(tmp_path, rows.replace("24", "25"))


@pytest.mark.parametrize(
    ("old", "new"), [("40", "[40, 40, 40]"), ("40", "[40, 40, 39]"), ("8\n", "8\npriority = 0\n")]
)
def test_lists_change_the_digest_and_defaults_do_not(tmp_path, old, new):
    same = new.endswith("priority = 0\n")
    changed = digest(load(tmp_path, PLAIN.replace(old, new)))
    assert (changed == digest(load(tmp_path, PLAIN))) is same


ONE_SCHEDULER = "expected an engine with one scheduler, whose steps count"


@pytest.mark.parametrize(("keys", "line"), read_mistakes("rows"))
def test_each_mistake_is_named_with_its_key(tmp_path, keys, line):
    named = [key.partition(" =")[0] for key in keys.splitlines()]
    rest = [row for row in PLAIN.splitlines() if row.partition(" =")[0] not in named]
    said = refusal(ScenarioError, load, tmp_path, "\n".join([*rest, keys, ""]))
    assert said == f"scenarios/x.toml: workload.waves[0].{line}"


SECOND = "[[workload.waves]]\nrequests = 3\ninput_tokens = 9\noutput_tokens = 8\n"
AGAIN = "[[workload.waves]]\nagain = true\n"


@pytest.mark.parametrize(
    ("first", "second", "line"), read_mistakes("two-waves", plain=PLAIN, second=SECOND, again=AGAIN)
)
def test_what_two_waves_cannot_be_together_is_named(tmp_path, first, second, line):
    said = refusal(ScenarioError, load, tmp_path, f"{first}\n{second}")
    assert said == f"scenarios/x.toml: workload.waves[1].{line}"


def test_the_first_wave_cannot_ask_again(tmp_path):
    said = refusal(ScenarioError, load, tmp_path, AGAIN)
    wanted = "scenarios/x.toml: workload.waves[0].again: expected a wave before it, found none"
    assert wanted in said.splitlines()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ('arrival = "steps"\nat_step = [0, 1, 2]', f"arrival: {ONE_SCHEDULER}"),
        ("token_budget = 64", f"token_budget: {ONE_SCHEDULER}"),
    ],
)
@pytest.mark.parametrize("engine", ["disaggregated = true", "data_parallel_size = 2"])
def test_steps_are_counted_in_one_scheduler(tmp_path, keys, line, engine):
    said = refusal(ScenarioError, load, tmp_path, f"{PLAIN}{keys}\n", engine)
    assert said == f"scenarios/x.toml: workload.waves[0].{line}"


@pytest.mark.parametrize(
    ("keys", "name"),
    [('arrival = "steps"\nat_step = [0, 1, 2]', "arrival"), ("token_budget = 64", "token_budget")],
)
def test_steps_of_a_pipeline_overlap(tmp_path, keys, name):
    load(tmp_path, f"{PLAIN}{keys}\n", "tensor_parallel_size = 2")
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, f"{PLAIN}{keys}\n", "pipeline_parallel_size = 2")
    assert str(caught.value) == (
        f"scenarios/x.toml: workload.waves[0].{name}: expected none with "
        "engine.pipeline_parallel_size (2): its steps overlap"
    )


def test_a_budget_is_at_most_the_engines_own(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, f"{PLAIN}token_budget = 65\n", "max_num_batched_tokens = 64")
    assert str(caught.value) == (
        "scenarios/x.toml: workload.waves[0].token_budget: expected at most "
        "engine.max_num_batched_tokens (64), found 65"
    )
