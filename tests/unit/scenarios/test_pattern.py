"""The pattern language: what can be said, what comes of it, and how mistakes are worded."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.fixes import FIX_PARTS, FIXES
from hybridwatch.scenarios.pattern import Span, Wave
from tests.unit.scenarios.example import GOOD, WAVE, load

KEY = "workload.waves[0]"


def span(low: int, high: int, **more: int) -> Span:
    return Span.model_validate({"from": low, "to": high, **more})


def wave(**changes: Any) -> Wave:
    content = {"requests": 6, "input_tokens": 40, "output_tokens": 20}
    return Wave.model_validate(content | changes)


def lengths(planned: Any) -> list[int]:
    return [len(request.prompt) for request in planned.requests]


# Spans.


@pytest.mark.parametrize(
    ("given_span", "drawn"),
    [
        (span(24, 24), [24]),
        (span(3, 5), [3, 4, 5]),
        (span(20, 70, multiple_of=16), [32, 48, 64]),
        (span(20, 70, multiple_of=16, plus=1), [33, 49, 65]),
        (span(1, 40, multiple_of=16, plus=1), [1, 17, 33]),
        (span(16, 48, multiple_of=16), [16, 32, 48]),
        (span(1, 40, multiple_of=16, plus=30), [30]),
    ],
)
def test_a_span_has_these_lengths(given_span, drawn):
    assert list(given_span.lengths) == drawn
    assert given_span.at(0.0) == drawn[0]
    assert given_span.at(math.nextafter(1, 0)) == drawn[-1]


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 64), st.integers(0, 64))
def test_a_span_is_what_its_words_say(low, more, step, plus):
    high = low + more
    wanted = [n for n in range(low, high + 1) if n >= plus and (n - plus) % step == 0]
    if wanted:
        assert list(span(low, high, multiple_of=step, plus=plus).lengths) == wanted
    else:
        with pytest.raises(ValueError, match="fields disagree"):
            span(low, high, multiple_of=step, plus=plus)


def test_a_number_alone_is_a_span_of_one_length():
    assert wave(input_tokens=40) == wave(input_tokens={"from": 40, "to": 40})


# Expansion.


def test_the_same_seed_gives_the_same_requests_and_another_one_others():
    waves = [wave(repeat=2), wave(arrival="poisson", rate=4.0)]
    assert expand(waves, 3) == expand(waves, 3)
    assert expand(waves, 3) != expand(waves, 4)
    assert expand(waves, 3) != expand(waves, 3, "prelude")


def test_what_comes_of_a_seed_is_pinned():
    """A change here would silently turn every scenario into another one."""
    (planned,) = expand(
        [wave(requests=2, input_tokens={"from": 4, "to": 9}, arrival="poisson", rate=2.0)], 1
    )
    said = [(bytes(r.prompt).decode("ascii"), r.max_tokens, r.delay_s) for r in planned.requests]
    assert said == [("uUnU", 20, 1.411384), ("MAiFrW eZ", 20, 1.871041)]


def test_a_wave_stays_as_it_is_when_another_one_is_edited():
    one, two = wave(input_tokens={"from": 20, "to": 60}), wave(repeat=3)
    edited = wave(requests=9, output_tokens=5, early_finish=0.5)
    assert expand([one, two], 1)[1:] == expand([edited, two], 1)[1:]
    assert expand([one, two], 1)[0] == expand([one, edited], 1)[0]


def test_more_requests_leave_the_first_ones_as_they_were():
    few, many = expand([wave(requests=4)], 1)[0], expand([wave(requests=9)], 1)[0]
    assert many.requests[:4] == few.requests


def test_every_repeat_has_new_texts():
    planned = expand([wave(repeat=3, requests=5)], 1)
    prompts = [request.prompt for part in planned for request in part.requests]
    assert len(planned) == 3
    assert len(set(prompts)) == 15


def test_prompts_are_printable_and_all_different():
    planned = expand([wave(requests=63, input_tokens={"from": 1, "to": 2})], 1)[0]
    prompts = [request.prompt for request in planned.requests]
    assert len(set(prompts)) == 63
    assert all(32 <= token <= 126 for prompt in prompts for token in prompt)


def test_more_requests_than_texts_are_made_all_the_same():
    planned = expand([wave(requests=200, input_tokens=1)], 1)[0]
    assert len(planned.requests) == 200
    assert len({request.prompt for request in planned.requests}) > 55


def test_lengths_are_drawn_from_the_whole_span():
    inputs = {"from": 20, "to": 70, "multiple_of": 16, "plus": 1}
    planned = expand([wave(requests=60, input_tokens=inputs)], 1)[0]
    assert set(lengths(planned)) == {33, 49, 65}


@pytest.mark.parametrize(
    ("requests", "share", "early"),
    [(8, 0.0, 0), (8, 0.25, 2), (3, 0.67, 2), (1, 0.5, 1), (5, 1, 5)],
)
def test_early_finish_takes_exactly_its_share(requests, share, early):
    planned = expand([wave(requests=requests, output_tokens=100_000, early_finish=share)], 1)[0]
    tokens = [request.max_tokens for request in planned.requests]
    assert sum(length < 100_000 for length in tokens) == early
    assert min(tokens) >= 1


def test_early_ends_are_spread_over_the_whole_answer():
    planned = expand([wave(requests=400, output_tokens=10, early_finish=1.0)], 1)[0]
    counts = [[r.max_tokens for r in planned.requests].count(length) for length in range(1, 11)]
    assert min(counts) > 15


def test_early_finish_does_not_touch_the_prompts():
    whole, cut = expand([wave()], 1)[0], expand([wave(early_finish=0.5)], 1)[0]
    assert [r.prompt for r in whole.requests] == [r.prompt for r in cut.requests]


def test_prefixes_are_taken_in_turn():
    planned = expand([wave(shared_prefix_tokens=32, prefixes=2)], 1)[0]
    starts = [request.prompt[:32] for request in planned.requests]
    assert starts == [starts[0], starts[1]] * 3
    assert starts[0] != starts[1]
    assert len({request.prompt for request in planned.requests}) == 6
    assert set(lengths(planned)) == {40}


def test_a_prefix_is_the_same_text_in_every_wave_and_section():
    first = wave(shared_prefix_tokens=32, prefixes=2, repeat=2)
    longer = wave(shared_prefix_tokens=36, prefixes=1, first_prefix=1)
    apart = wave(shared_prefix_tokens=32, first_prefix=2)
    one, again, other, own = expand([first, longer, apart], 1)
    earlier = {request.prompt[:32] for request in one.requests}
    assert {request.prompt[:32] for request in again.requests} == earlier
    assert {request.prompt[:32] for request in other.requests} < earlier
    assert not {request.prompt[:32] for request in own.requests} & earlier
    (before, _) = expand([first], 1, "prelude")
    assert {request.prompt[:32] for request in before.requests} == earlier
    assert {request.prompt for request in before.requests}.isdisjoint(
        request.prompt for request in one.requests
    )


def test_another_seed_has_other_prefixes():
    shared = wave(shared_prefix_tokens=32)
    starts = {expand([shared], seed)[0].requests[0].prompt[:32] for seed in (1, 2)}
    assert len(starts) == 2


def test_poisson_gaps_have_the_rate_and_no_other_wave_has_gaps():
    planned = expand([wave(requests=2000, arrival="poisson", rate=50.0)], 1)[0]
    times = [request.delay_s for request in planned.requests]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert min(gaps) >= 0
    assert 0.018 < mean < 0.022
    # Gaps without memory are as wide as they are long.
    assert 0.9 < math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean < 1.1
    assert {r.delay_s for r in expand([wave()], 1)[0].requests} == {0.0}


def test_rank_and_arrival_are_handed_on():
    queue = wave(arrival="queue", max_concurrency=3, rank=1)
    planned = expand([queue], 1)[0]
    assert (planned.arrival, planned.max_concurrency) == ("queue", 3)
    assert {request.rank for request in planned.requests} == {1}


# Mistakes in a file.

LENGTH = (
    "an integer from 1 to 1048576 or a table with from and to or a list of integers from 1 to "
    "1048576"
)
MISTAKES = [
    ("output_tokens = 32", "output_tokens = 0", f"output_tokens: expected {LENGTH}, found 0"),
    ("output_tokens = 32", 'output_tokens = "x"', f'output_tokens: expected {LENGTH}, found "x"'),
    ("output_tokens = 32", "output_tokens = true", f"output_tokens: expected {LENGTH}, found true"),
    ("output_tokens = 32", "output_tokens = 3.5", f"output_tokens: expected {LENGTH}, found 3.5"),
    ("output_tokens = 32\n", "", f"output_tokens: missing; expected {LENGTH}"),
    (
        "output_tokens = 32",
        "output_tokens = { from = 32 }",
        "output_tokens.to: missing; expected an integer from 1 to 1048576",
    ),
    (
        "from = 20, ",
        "from = 20, form = 30, ",
        'input_tokens.form: unknown key; did you mean "from"?',
    ),
    (
        "multiple_of = 16",
        'multiple_of = "16"',
        'input_tokens.multiple_of: expected an integer from 1 to 1048576, found "16"',
    ),
    (
        "plus = 1",
        "plus = -1",
        "input_tokens.plus: expected an integer from 0 to 1048576, found -1",
    ),
    (
        "from = 20, to = 300",
        "from = 300, to = 20",
        "input_tokens: expected a length 16k + 1 from 300 to 20, found none",
    ),
    (
        "from = 20, to = 300",
        "from = 20, to = 32",
        "input_tokens: expected a length 16k + 1 from 20 to 32, found none",
    ),
    ("requests = 12", "requests = 0", "requests: expected an integer from 1 to 1000000, found 0"),
    ("requests = 12", "requests = 2", "requests: expected at least max_concurrency (3), found 2"),
    (
        "requests = 12",
        "requests = 12\nearly_finnish = 0.5",
        'early_finnish: unknown key; did you mean "early_finish"?',
    ),
    (
        'arrival = "queue"',
        'arrival = "cue"',
        'arrival: expected one of "together", "queue", "poisson", "steps", found "cue"',
    ),
    (
        "max_concurrency = 3\n",
        "",
        'max_concurrency: missing; arrival "queue" needs it',
    ),
    (
        "max_concurrency = 3",
        'max_concurrency = "3"',
        'max_concurrency: expected an integer from 1 to 8192, found "3"',
    ),
    (
        'arrival = "queue"\n',
        "",
        'max_concurrency: expected only with arrival "queue", found 3 with arrival "together"',
    ),
    (
        'arrival = "queue"\nmax_concurrency = 3',
        'arrival = "poisson"',
        'rate: missing; arrival "poisson" needs it',
    ),
    (
        "max_concurrency = 3",
        "max_concurrency = 3\nrate = 2",
        'rate: expected only with arrival "poisson", found 2 with arrival "queue"',
    ),
    (
        'arrival = "queue"\nmax_concurrency = 3',
        'arrival = "poisson"\nrate = 0',
        "rate: expected a number from 0.001 to 10000, found 0",
    ),
    (
        "early_finish = 0.25",
        "early_finish = 25",
        "early_finish: expected a number from 0 to 1, found 25",
    ),
    (
        "early_finish = 0.25",
        "shared_prefix_tokens = 33",
        "input_tokens: expected more than shared_prefix_tokens (33), found 33",
    ),
    (
        "early_finish = 0.25",
        "prefixes = 2",
        "prefixes: expected only with shared_prefix_tokens, found 2",
    ),
    (
        "early_finish = 0.25",
        "first_prefix = 2",
        "first_prefix: expected only with shared_prefix_tokens, found 2",
    ),
    (
        "early_finish = 0.25",
        "rank = 0",
        "rank: expected none with engine.data_parallel_size 1, found 0",
    ),
]
ELSEWHERE = [
    (
        "output_tokens = 32",
        "output_tokens = 800",
        (
            f"{KEY}: expected input_tokens + output_tokens at most engine.max_model_len (1024), "
            "found 1089"
        ),
    ),
    (
        "output_tokens = 1\n",
        "output_tokens = 1001\n",
        (
            "workload.prelude[0]: expected input_tokens + output_tokens at most "
            "engine.max_model_len (1024), found 1025"
        ),
    ),
    (WAVE, "", "workload.waves: missing; expected a non-empty list of tables"),
    (
        "seed = 5\n",
        "seed = 5\nidle_dummy_batches = 5000\n",
        "workload.idle_dummy_batches: expected an integer from 0 to 4096, found 5000",
    ),
]


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [*((right, wrong, f"{KEY}.{line}") for right, wrong, line in MISTAKES), *ELSEWHERE],
    ids=[line[:60] for _, _, line in (*MISTAKES, *ELSEWHERE)],
)
def test_each_mistake_is_reported_in_one_line(tmp_path, right, wrong, line):
    edited = WAVE.replace(right, wrong, 1) if right in WAVE else WAVE
    text = GOOD.replace(WAVE, edited) if edited != WAVE else GOOD.replace(right, wrong, 1)
    assert text != GOOD
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"scenarios/x.toml: {line}"


def test_no_wave_at_all_is_reported(tmp_path):
    text = GOOD.replace(WAVE, "").replace("seed = 5\n", "seed = 5\nwaves = []\n")
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == (
        "scenarios/x.toml: workload.waves: expected a non-empty list of tables, found []"
    )


ENGINE_MISTAKES = [
    (
        "max_num_batched_tokens = 15",
        "engine.max_num_batched_tokens: expected at least max_num_seqs (16), found 15",
    ),
    (
        "data_parallel_size = 2\ndisaggregated = true",
        "engine.disaggregated: expected false with data_parallel_size 2, found true",
    ),
    (
        "data_parallel_size = 9",
        "engine.data_parallel_size: expected an integer from 1 to 8, found 9",
    ),
    (
        "tensor_parallel_size = 9",
        "engine.tensor_parallel_size: expected an integer from 1 to 8, found 9",
    ),
    (
        "pipeline_parallel_size = 0",
        "engine.pipeline_parallel_size: expected an integer from 1 to 8, found 0",
    ),
    (
        "tensor_parallel_size = 2\ndata_parallel_size = 2",
        "engine.tensor_parallel_size: expected 1 with data_parallel_size 2, found 2",
    ),
    (
        "pipeline_parallel_size = 2\ndisaggregated = true",
        "engine.pipeline_parallel_size: expected 1 with disaggregated = true, found 2",
    ),
    (
        'mamba_cache_mode = "some"',
        'engine.mamba_cache_mode: expected one of "none", "align", "all", found "some"',
    ),
    (
        "enable_prefix_caching = 1",
        "engine.enable_prefix_caching: expected true or false, found 1",
    ),
    (
        'block_size = "16"',
        'engine.block_size: expected an integer from 1 to 1048576, found "16"',
    ),
]


@pytest.mark.parametrize(
    ("keys", "line"), ENGINE_MISTAKES, ids=[m[1][:60] for m in ENGINE_MISTAKES]
)
def test_engine_keys_are_checked(tmp_path, keys, line):
    text = GOOD.replace("max_num_seqs = 16\n", f"max_num_seqs = 16\n{keys}\n")
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"scenarios/x.toml: {line}"


def test_ranks_are_checked_against_their_number(tmp_path):
    text = GOOD.replace("max_num_seqs = 16\n", "max_num_seqs = 16\ndata_parallel_size = 2\n")
    ranked = text.replace("early_finish = 0.25", "rank = 1")
    assert load(tmp_path, ranked).workload.waves[0].rank == 1
    wrong = ranked.replace("rank = 1", "rank = 2")
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, wrong.replace("seed = 5", "seed = 5\nidle_dummy_batches = 4"))
    assert str(caught.value).splitlines() == [
        (
            "scenarios/x.toml: workload.idle_dummy_batches: expected 0 with "
            "engine.data_parallel_size 2, found 4"
        ),
        (
            "scenarios/x.toml: workload.waves[0].rank: expected less than "
            "engine.data_parallel_size (2), found 2"
        ),
    ]


def test_each_rank_has_a_batch_of_its_own(tmp_path):
    text = GOOD.replace("max_num_seqs = 16\n", "max_num_seqs = 16\ndata_parallel_size = 2\n")
    load(tmp_path, text.replace("max_concurrency = 4", "max_concurrency = 32"))
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text.replace("max_concurrency = 4", "max_concurrency = 33"))
    assert str(caught.value) == (
        "scenarios/x.toml: accuracy.max_concurrency: expected at most engine.max_num_seqs (16) "
        "of each of 2 ranks, found 33"
    )


def test_a_prelude_may_be_left_out(tmp_path):
    prelude = GOOD[GOOD.index("[[workload.prelude]]") : GOOD.index("[[workload.waves]]")]
    assert load(tmp_path, GOOD.replace(prelude, "")).workload.prelude == ()


def test_every_fix_of_a_whole_is_a_fix():
    assert set(FIX_PARTS) < set(FIXES)
    assert all(part in FIXES for parts in FIX_PARTS.values() for part in parts)
