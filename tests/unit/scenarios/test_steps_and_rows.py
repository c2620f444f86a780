"""Waves whose requests differ row by row, come and go at engine steps, and are asked again."""

from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario
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


LISTS = "a list of integers from 1 to 1048576"
ONE_SCHEDULER = "expected an engine with one scheduler, whose steps count"
MISTAKES = [
    (
        "output_tokens = [8, 9]",
        "output_tokens: expected one entry for each of 3 requests, found 2",
    ),
    (
        "input_tokens = [40, 0, 40]",
        (
            "input_tokens: expected an integer from 1 to 1048576 or a table with from and to or "
            f"{LISTS}, found [40, 0, 40]"
        ),
    ),
    (
        "shared_prefix_tokens = [0, -1, 3]",
        (
            "shared_prefix_tokens: expected an integer from 0 to 1048576 or a list of integers "
            "from 0 to 1048576, found [0, -1, 3]"
        ),
    ),
    (
        "shared_prefix_tokens = [0, 40, 3]",
        "input_tokens: expected more than shared_prefix_tokens (40) of request 1, found 40",
    ),
    (
        'text = "recall"\nshared_prefix_tokens = [0, 4, 3]',
        'shared_prefix_tokens: expected one number with text "recall", found a list',
    ),
    ('arrival = "steps"', 'at_step: missing; arrival "steps" needs it'),
    (
        "at_step = [0, 1, 2]",
        'at_step: expected only with arrival "steps", found it with arrival "together"',
    ),
    (
        'arrival = "steps"\nat_step = [0, 1]',
        "at_step: expected one entry for each of 3 requests, found 2",
    ),
    (
        'arrival = "steps"\nat_step = [0, 1, -1]',
        "at_step[2]: expected an integer from 0 to 100000, found -1",
    ),
    (
        'arrival = "queue"\nmax_concurrency = 1\naborts = [{ request = 0, step = 1 }]',
        'aborts: expected only with arrival "together" or "steps", found it with arrival "queue"',
    ),
    (
        "aborts = [{ request = 3, step = 1 }]",
        "aborts[0].request: expected less than requests (3), found 3",
    ),
    (
        "aborts = [{ request = 0, step = 1 }, { request = 0, step = 2 }]",
        "aborts: expected each request once, found [0, 0]",
    ),
    (
        'arrival = "steps"\nat_step = [0, 5, 5]\naborts = [{ request = 1, step = 4 }]',
        "aborts[0].step: expected at least its at_step (5), found 4",
    ),
    ("aborts = [{ request = 0 }]", "aborts[0].step: missing; expected an integer from 0 to 100000"),
    ("overlap_after_steps = 3", "overlap_after_steps: expected a wave before it, found none"),
    ("idle_s = 6", "idle_s: expected a number from 0 to 5, found 6"),
    (
        "temperature = 0.5",
        "sampling_seed: missing; answers with a temperature need it to be given twice",
    ),
    ("sampling_seed = 5", "sampling_seed: expected only with a temperature above 0, found 5"),
    ("n = 2", "n: expected only with a temperature above 0, found 2"),
    (
        "n = 2\ntemperature = 1\nsampling_seed = 1\naborts = [{ request = 0, step = 1 }]",
        "n: expected 1 in a wave with aborts, found 2",
    ),
    ("priority = 1", 'priority: expected only with engine.scheduling_policy "priority"'),
]


@pytest.mark.parametrize(("keys", "line"), MISTAKES, ids=[line[:60] for _, line in MISTAKES])
def test_each_mistake_is_named_with_its_key(tmp_path, keys, line):
    named = [key.partition(" =")[0] for key in keys.splitlines()]
    rest = [row for row in PLAIN.splitlines() if row.partition(" =")[0] not in named]
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, "\n".join([*rest, keys, ""]))
    assert str(caught.value) == f"scenarios/x.toml: workload.waves[0].{line}"


SECOND = "[[workload.waves]]\nrequests = 3\ninput_tokens = 9\noutput_tokens = 8\n"
AGAIN = "[[workload.waves]]\nagain = true\n"
MISTAKES_OF_TWO = [
    (
        PLAIN,
        f"{AGAIN}requests = 3\n",
        "requests: expected none, a wave that asks again takes it from the one before, found 3",
    ),
    (
        PLAIN,
        f"{SECOND}overlap_after_steps = 2\nidle_s = 1.0\n",
        "idle_s: expected none in a wave that overlaps the one before",
    ),
    (
        f'{PLAIN}arrival = "queue"\nmax_concurrency = 1\n',
        f"{SECOND}overlap_after_steps = 2\n",
        (
            'overlap_after_steps: expected a wave before it with arrival "together" or "steps", '
            'found "queue"'
        ),
    ),
    (
        f"{PLAIN}aborts = [{{ request = 0, step = 1 }}]\n",
        f"{SECOND}continues = true\n",
        "continues: expected a wave before it without temperature, aborts, prompt_logprobs",
    ),
]


@pytest.mark.parametrize(
    ("first", "second", "line"), MISTAKES_OF_TWO, ids=[line[:60] for _, _, line in MISTAKES_OF_TWO]
)
def test_what_two_waves_cannot_be_together_is_named(tmp_path, first, second, line):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, f"{first}\n{second}")
    assert str(caught.value) == f"scenarios/x.toml: workload.waves[1].{line}"


def test_the_first_wave_cannot_ask_again(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, AGAIN)
    wanted = "scenarios/x.toml: workload.waves[0].again: expected a wave before it, found none"
    assert wanted in str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ('arrival = "steps"\nat_step = [0, 1, 2]', f"arrival: {ONE_SCHEDULER}"),
        ("token_budget = 64", f"token_budget: {ONE_SCHEDULER}"),
    ],
)
@pytest.mark.parametrize("engine", ["disaggregated = true", "data_parallel_size = 2"])
def test_steps_are_counted_in_one_scheduler(tmp_path, keys, line, engine):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, f"{PLAIN}{keys}\n", engine)
    assert str(caught.value) == f"scenarios/x.toml: workload.waves[0].{line}"


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
