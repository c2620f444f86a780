"""The reason of an engine's death, out of what its processes logged one after the other."""

import pytest

from hybridwatch.analysis.cause import causes_in
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.wording.cause_text import LONGEST, bounded, deaths_in, find_death, plain
from hybridwatch.records.run import Failure
from tests.broken_engines import AGAIN, CUDA_LOG, dead_contender, healthy, with_deaths
from tests.builders import Trials, a_run

CUDA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


def death_in(*failures: Failure, side: int = 1):
    sides = (healthy(), {}) if side else ({}, healthy())
    (death,) = deaths_in(build_report(with_deaths(a_run(*sides), side, *failures)))
    return death


@pytest.mark.parametrize(
    ("root", "shown"),
    [
        ("RuntimeError: CUDA error: x", "CUDA error: x"),
        (CUDA, "CUDA error: an illegal memory access was encountered"),
        ("torch.OutOfMemoryError: CUDA out of memory", "OutOfMemoryError: CUDA out of memory"),
        ("AssertionError", "AssertionError"),
        ("RuntimeError", "RuntimeError"),
    ],
)
def test_a_type_that_says_nothing_is_left_out(root, shown):
    assert plain(root) == shown


def test_a_reason_is_one_line_of_a_bounded_length():
    assert bounded("a\n  b") == "a b"
    assert len(bounded("x" * 999)) == LONGEST + 1


def test_a_dead_engine_is_told_by_the_root_and_not_by_what_the_client_saw():
    (death,) = deaths_in(build_report(dead_contender()))
    assert death.reason == "CUDA error: an illegal memory access was encountered"
    assert death.ended
    assert (death.sides, death.trials) == (("contender",), 5)


def test_a_later_trial_tells_why_where_the_first_does_not():
    known = Failure("no answer", CUDA_LOG, engine_died=True)
    death = death_in(Failure("no answer", "nothing", engine_died=True), known)
    assert death.reason.startswith("CUDA error")


def test_without_a_root_the_failure_says_what_it_knows():
    death = death_in(Failure("requests still ran after 60 s", "no error here"))
    assert death.reason == "requests still ran after 60 s"
    assert not death.ended


def test_an_engine_that_answers_nothing_in_time_hung():
    death = death_in(Failure("a request was not answered: ReadTimeout('')", "x", engine_died=True))
    assert death.hung
    assert not death.ended


def test_both_sides_that_died_are_named():
    run = with_deaths(with_deaths(a_run({}, {}), 0, AGAIN), 1, AGAIN)
    report = build_report(run)
    (cause,) = causes_in(report)
    death = find_death(report, cause)
    assert death is not None
    assert death.sides == ("baseline", "contender")


def test_failures_of_another_phase_are_not_the_reason():
    old: dict[str, Trials] = {"ttft": (0.1,) * 5}
    new: dict[str, Trials] = {"ttft": (0.1,) * 5, "accuracy.recall": "1"}
    report = build_report(with_deaths(a_run(old, new), 0, Failure("it broke", "log")))
    (cause, *_) = causes_in(report)
    assert {part.metric for part in cause.parts} == {"accuracy.recall"}
    death = find_death(report, cause)
    assert death is not None
    assert death.trials == 1


def test_a_report_keeps_what_is_known_of_each_failed_trial():
    report = build_report(dead_contender())
    first = report.failed_trials[0]
    assert first.place == "contender, contract trial 19"
    assert first.engine_died
    assert first.log_tail == CUDA_LOG
    assert report.failures[0] == f"{first.place}: {first.reason}"
