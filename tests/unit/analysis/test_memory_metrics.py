"""How what an engine takes in memory is judged, with values as real engines gave them."""

import pytest

from hybridwatch.analysis.cause import Area, causes_in
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.subject import MEMORY_SUBJECTS, OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.metrics import Kind, find_metric
from tests.builders import a_run

LEAST = 4096.0
"""Of a trial that grew by less than is told."""
CALM = (LEAST,) * 10
JUMP = (*CALM[:3], 53_000.0, *CALM[4:])
LEAK_16 = (
    15_872.0,
    16_640.0,
    16_128.0,
    17_019.0,
    16_896.0,
    16_128.0,
    16_896.0,
    61_000.0,
    16_256.0,
    16_512.0,
)
CACHE = {"cache_blocks": 47.0, "kv_cache_tokens": 2830.0, "state_bytes": 4e5, "request_blocks": 6.0}


def verdicts_of(old, new):
    return {one.metric.id: one.verdict for one in build_report(a_run(old, new)).comparisons}


@pytest.mark.parametrize(("old", "new"), [(CALM, CALM), (CALM, JUMP), (JUMP, CALM), (JUMP, JUMP)])
def test_engines_that_grow_by_a_jump_now_and_then_are_the_same(old, new):
    found = verdicts_of({"memory_growth": old}, {"memory_growth": new})
    assert found == {"memory_growth": Verdict.EQUIVALENT}


@pytest.mark.parametrize("old", [CALM, JUMP])
def test_a_leak_of_16_kib_a_request_is_a_regression(old):
    report = build_report(a_run({"memory_growth": old}, {"memory_growth": LEAK_16}))
    assert [one.verdict for one in report.comparisons] == [Verdict.REGRESSION]
    [cause] = causes_in(report)
    assert cause.area is Area.MEMORY


@pytest.mark.parametrize(
    ("metric", "value", "verdict"),
    [
        ("cache_blocks", 46.0, Verdict.REGRESSION),
        ("cache_blocks", 48.0, Verdict.IMPROVEMENT),
        ("kv_cache_tokens", 2829.0, Verdict.REGRESSION),
        ("state_bytes", 4e5 + 1, Verdict.REGRESSION),
        ("request_blocks", 7.0, Verdict.REGRESSION),
        ("request_blocks", 6.0, Verdict.EQUIVALENT),
    ],
)
def test_one_block_or_byte_of_the_cache_is_a_change(metric, value, verdict):
    old = {name: (number,) * 3 for name, number in CACHE.items()}
    found = verdicts_of(old, old | {metric: (value,) * 3})
    assert found == dict.fromkeys(CACHE, Verdict.EQUIVALENT) | {metric: verdict}


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (1.004, Verdict.EQUIVALENT),  # two starts of one build
        (1.03, Verdict.WORSE_WITHIN),
        (1.08, Verdict.REGRESSION),
    ],
)
def test_what_two_starts_of_one_build_differ_by_is_no_change(share, verdict):
    old = tuple(1e9 + 50_000.0 * trial for trial in range(10))
    new = tuple(share * value + 30_000.0 for value in old)
    assert verdicts_of({"resident_memory": old}, {"resident_memory": new}) == {
        "resident_memory": verdict
    }


def test_a_run_from_before_memory_was_told_leaves_it_out():
    before = a_run({"output_throughput": (9.0,) * 3})
    after = a_run(
        {"output_throughput": (9.0,) * 3} | {name: (one,) * 3 for name, one in CACHE.items()},
        id="22222222",
    )
    for one, other in ((before, after), (after, before)):
        report = report_between(OneSide(one, 0), OneSide(other, 0))
        assert [one.metric.id for one in report.comparisons] == ["output_throughput"]


def test_what_of_it_one_side_lacks_is_missing_where_it_has_the_rest():
    old = {name: (number,) * 3 for name, number in CACHE.items()}
    new = {name: values for name, values in old.items() if name != "request_blocks"}
    assert verdicts_of(old, new)["request_blocks"] is Verdict.MISSING


def test_each_is_a_count_which_a_busy_machine_does_not_move():
    metrics = [find_metric(name) for name in MEMORY_SUBJECTS]
    assert {metric.kind for metric in metrics} == {Kind.COUNT}
    assert not any(metric.hangs_on_the_clock for metric in metrics)
