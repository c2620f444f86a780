"""A cause in one sentence, as everybody reads it who is told of a change.

The reason of an engine's death, out of what its processes logged one after the other.
"""

import pytest

from hybridwatch.analysis.cause import CausePart, causes_in, find_causes
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.cause_text import (
    LONGEST,
    bounded,
    cause_sentence,
    cause_text,
    deaths_in,
    find_death,
    plain,
)
from hybridwatch.records.run import Failure, Phase
from tests.broken_engines import (
    AGAIN,
    CUDA_LOG,
    DEATH,
    dead_contender,
    healthy,
    slow_contender,
    with_deaths,
)
from tests.builders import Trials, a_run, noisy, with_failures

WRONG = "contract.wrong_tokens"
BROKEN = "A contract is broken on both sides, so not new"
SYNCS = "host_syncs_per_step"
DIED = "The engine died: CUDA error: an illegal memory access was encountered"


def sentences(run) -> list[str]:
    report = build_report(run)
    return [cause_sentence(cause, report) for cause in causes_in(report)]


def part(metric, effect=0.1, verdict=Verdict.REGRESSION, statistic="median"):
    return CausePart(metric, statistic, verdict, effect, Action.BLOCK)


def sentence_without_report(*parts) -> str:
    (cause,) = find_causes(parts)
    return cause_sentence(cause)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({WRONG: (0.0,)}, {WRONG: (26.0,)}, f"A contract broke: {WRONG} 0 -> 26"),
        ({WRONG: (26.0,)}, {WRONG: (0.0,)}, f"A contract holds again: {WRONG} 26 -> 0"),
        ({WRONG: (2.0,)}, {WRONG: (9.0,)}, f"A contract is broken more often: {WRONG} 2 -> 9"),
        ({WRONG: (9.0,)}, {WRONG: (2.0,)}, f"{BROKEN}: {WRONG} 9 -> 2"),
        ({WRONG: (10.0,)}, {WRONG: (10.0,)}, f"{BROKEN}: {WRONG} 10 -> 10"),
        (
            {"accuracy.recall": "1" * 200},
            {"accuracy.recall": "1" * 192 + "0" * 8},
            "Answers were lost: accuracy.recall -4.0 points (8 lost and none won of 200)",
        ),
        (
            {"accuracy.recall": "1" * 198 + "00"},
            {"accuracy.recall": "1" * 180 + "0" * 18 + "11"},
            "Answers were lost: accuracy.recall -8.0 points (18 lost and 2 won of 200)",
        ),
        ({"tpot": (1.0,)}, {}, "Not measured: tpot"),
        ({"tpot": (1.0,), "itl": (1.0,)}, {}, "Not measured: tpot and 1 more metric"),
    ],
)
def test_a_cause_is_reported_with_its_size(old, new, told):
    assert sentences(a_run(old, new)) == [told]


def test_a_slow_down_of_ten_rows_is_one_sentence():
    (told,) = sentences(slow_contender())
    assert told == "Slower: output_throughput -5.4 % and 6 more metrics"


def test_a_dead_engine_is_one_sentence_with_its_reason():
    assert sentences(dead_contender()) == [f"{DIED}; all 12 metrics failed"]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (DEATH, DIED),
        (AGAIN, "Trials failed: engine healthy was started 3 times and died again"),
        (Failure("the engine was not up after 60 s", ""), "The engine was not up after 60 s"),
        (
            Failure("the engine ended while starting (status 1): ValueError: no", "", True),
            "The engine ended while starting (status 1): ValueError: no",
        ),
        (
            Failure("a request was not answered: ReadTimeout('')", "", True),
            "The engine hung: a request was not answered: ReadTimeout('')",
        ),
    ],
)
def test_every_failure_of_an_engine_is_a_sentence(failure, told):
    (said,) = sentences(with_deaths(a_run(healthy(), {}), 1, failure))
    assert said == f"{told}{'; ' if ': ' in told else ': '}all 12 metrics failed"


def test_the_baseline_is_named_where_it_died():
    (told,) = sentences(with_deaths(a_run({}, healthy()), 0, DEATH))
    assert told.startswith("The baseline's engine died: CUDA error")
    run = with_deaths(with_deaths(a_run({}, {}), 0, DEATH), 1, DEATH)
    assert sentences(run)[0].startswith("The engines died: CUDA error")


def test_one_phase_that_failed_names_its_metric():
    new: dict[str, Trials] = {"tpot": noisy(1.0)}
    old: dict[str, Trials] = {"accuracy.recall": "1" * 20, **new}
    run = with_failures(a_run(old, new), 1, Phase.ACCURACY, 1, "lm-eval ended with status 1: x")
    assert sentences(run) == [
        "Trials failed: lm-eval ended with status 1: x; accuracy.recall failed"
    ]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([part("ttft", 0.057), part("itl", 0.01)], "Slower: ttft +5.7 % and 1 more metric"),
        ([part("ttft", 0.2, statistic="p99")], "Slower: ttft p99 +20.0 %"),
        ([part("ttft", -0.2, Verdict.IMPROVEMENT)], "Faster: ttft -20.0 %"),
        ([part(SYNCS, 2 / 3, statistic="mean")], f"The host waits more: {SYNCS} +66.7 %"),
        ([part(SYNCS, None, statistic="mean")], f"The host waits more: {SYNCS}"),
        ([part("metadata_build_time", 0.5)], "The host works longer: metadata_build_time +50.0 %"),
        ([part("acceptance_length", -0.1)], "Fewer drafts are accepted: acceptance_length -10.0 %"),
        ([part(WRONG, 26.0, statistic="value")], f"A contract broke: {WRONG} +26"),
        ([part("accuracy.recall", -0.04)], "Answers were lost: accuracy.recall -4.0 points"),
        ([part("ttft", None, Verdict.FAILED)], "The engine failed: ttft failed"),
        ([part("unheard_of", 0.1)], "Worse: unheard_of +10.0 %"),
    ],
)
def test_verdicts_that_an_index_kept_are_reported_without_a_report(parts, told):
    assert sentence_without_report(*parts) == told


def test_a_count_is_reported_with_both_its_numbers():
    sides = {SYNCS: (3.0,) * 12}, {SYNCS: (5.0,) * 12}
    assert sentences(a_run(*sides)) == [f"The host waits more: {SYNCS} +66.7 % (3 -> 5)"]


def test_a_place_stands_behind_what_happened():
    (cause,) = find_causes([part("ttft", 0.057)])
    assert cause_text(cause).sentence(" in smoke/x") == "Slower in smoke/x: ttft +5.7 %"


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


def test_a_dead_engine_is_reported_by_the_root_and_not_by_what_the_client_saw():
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
