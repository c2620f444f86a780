"""What is known to be worse is never green, however small the loss."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis import judge
from hybridwatch.analysis.cause import causes_in
from hybridwatch.analysis.change_review import ChangeReview, Conclusion
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.paired_proportion import Pairs, equivalence_p, mcnemar_p
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.subject import list_sides
from hybridwatch.analysis.verdict import ORDER, Comparison, Report, Verdict
from hybridwatch.records.run import Run
from hybridwatch.reports.sentence import MARKS, headline, unsure
from hybridwatch.reports.table import STYLES
from hybridwatch_lab.calibration import families
from tests.builders import a_run, noisy

RECALL = "accuracy.recall"
WORSE = {Verdict.REGRESSION, Verdict.WORSE_WITHIN}


def answers(lost: int, won: int = 0, of: int = 1319) -> Run:
    old = "1" * (of - won) + "0" * won
    return a_run({RECALL: old}, {RECALL: "0" * lost + "1" * (of - lost)})


def slower(by: float) -> Run:
    return a_run({"tpot": noisy(1.0, 12, 0.003, 1)}, {"tpot": noisy(1.0 + by, 12, 0.003, 2)})


def the(report: Report) -> Comparison:
    return next(c for c in report.comparisons if c.statistic != "p99")


def test_thirteen_answers_lost_and_none_won_are_no_equivalence() -> None:
    report = build_report(answers(13))
    found = the(report)
    assert found.p_adjusted == pytest.approx(0.5**13)
    assert found.verdict is Verdict.WORSE_WITHIN
    assert "13 answers lost, none won: read the answers that flipped." in found.doubts
    assert gate(report).passed
    told = "worse by 1.0 points (0.6 to 1.7), within the margin of 2.0 points that you allow"
    assert gate(report).warnings == (f"{RECALL} mean: {told}",)
    assert unsure(report) == f"A gate only warns of {RECALL} ({told})."
    assert ChangeReview((report,)).conclusion is Conclusion.NEUTRAL
    assert headline(report) == (
        f"Answers were lost, within the margin: {RECALL} -1.0 points (13 lost and none won of "
        "1319). Nothing regressed."
    )


@pytest.mark.parametrize(
    ("lost", "won", "verdict", "told"),
    [
        (4, 0, Verdict.EQUIVALENT, False),
        (5, 0, Verdict.WORSE_WITHIN, True),
        (14, 1, Verdict.WORSE_WITHIN, False),
        (14, 8, Verdict.EQUIVALENT, False),
        (0, 13, Verdict.EQUIVALENT, False),
    ],
)
def test_a_loss_beyond_chance_is_told_and_a_gain_within_the_margin_is_green(
    lost, won, verdict, told
) -> None:
    found = the(build_report(answers(lost, won)))
    assert found.verdict is verdict
    assert any("none won" in doubt for doubt in found.doubts) is told


def test_a_slow_down_within_the_margin_is_not_green_either() -> None:
    verdicts = [the(build_report(slower(by))).verdict for by in (0.01, 0.0, -0.01, 0.06)]
    assert verdicts == [
        Verdict.WORSE_WITHIN,
        Verdict.EQUIVALENT,
        Verdict.EQUIVALENT,
        Verdict.REGRESSION,
    ]


@pytest.mark.parametrize(
    ("noise", "verdict"),
    [
        (None, Verdict.INCONCLUSIVE),
        (0.001, Verdict.WORSE_WITHIN),
        (0.004, Verdict.EQUIVALENT),
    ],
)
def test_between_two_runs_it_must_be_more_than_runs_differ_by(noise, verdict) -> None:
    """Five times the noise; where that is unknown neither is shown."""
    old, new = list_sides(slower(0.01))
    new = replace(new, run=replace(new.run, id="22222222"))
    terms = Terms(noise={} if noise is None else {("tpot", "median"): noise})
    assert the(report_between(old, new, terms)).verdict is verdict


def test_a_policy_may_watch_it_and_nothing_makes_it_stop() -> None:
    report = build_report(slower(0.01))
    for action in Action:
        result = gate(report, Policy((Rule("*", action=action),)))
        assert result.passed
        assert bool(result.warnings) is (action is not Action.WATCH)


def test_a_regression_leads_what_is_worse_within_the_margin() -> None:
    """Though users feel the other one more, and a policy only warns of either."""
    old = {"itl": noisy(1.0, 12, 0.003, 1), "ttft": noisy(1.0, 12, 0.003, 2)}
    new = {"itl": noisy(1.1, 12, 0.003, 3), "ttft": noisy(1.01, 12, 0.003, 4)}
    report = build_report(a_run(old, new))
    for policy in (STRICT, Policy((Rule("*", action=Action.WARN),))):
        (cause,) = causes_in(report, policy)
        assert (cause.lead.metric, cause.lead.verdict) == ("itl", Verdict.REGRESSION)
        assert Verdict.WORSE_WITHIN in {part.verdict for part in cause.parts}


def test_every_verdict_has_a_place_a_mark_and_a_style_of_its_own() -> None:
    assert sorted(ORDER, key=str) == sorted(Verdict, key=str)
    assert len(set(MARKS.values())) == len(Verdict)
    assert STYLES.keys() == set(Verdict)
    assert STYLES[Verdict.WORSE_WITHIN] not in {STYLES[one] for one in Verdict if one.is_good_news}


def equal_answers(asked: Comparison, rng: np.random.Generator) -> tuple[Comparison, ...]:
    """Three tasks of 1,319 questions, of which one engine answers 2 in 100 otherwise each time."""
    drafts = []
    for _ in range(3):
        flipped = int(rng.binomial(1319, 0.02))
        lost = int(rng.binomial(flipped, 0.5))
        pairs = Pairs(1319, lost, flipped - lost)
        drafts.append(
            replace(
                asked,
                effect=pairs.difference,
                p_value=mcnemar_p(pairs),
                equivalence_p=equivalence_p(pairs, asked.metric.margin),
            )
        )
    return judge.judge_together(drafts)[0]


def false_losses(found: Iterable[Sequence[Comparison]]) -> tuple[int, int]:
    """Count the reports that call something worse, and those in which all of it is within."""
    worse = [{c.verdict for c in report} & WORSE for report in found]
    return sum(map(bool, worse)), sum(verdicts == {Verdict.WORSE_WITHIN} for verdicts in worse)


def test_equal_answers_are_called_worse_in_at_most_one_report_of_twenty(monkeypatch) -> None:
    (asked,) = build_report(answers(1)).comparisons
    rng, reports = np.random.default_rng(1), 1000
    found, within = false_losses([equal_answers(asked, rng) for _ in range(reports)])
    assert 0 < within <= found <= 0.05 * reports
    monkeypatch.setattr(judge, "adjust", lambda p_values: p_values)
    without, _ = false_losses([equal_answers(asked, rng) for _ in range(reports)])
    assert without > 0.05 * reports, "the control is what keeps it"


def test_equal_times_are_called_worse_in_at_most_one_report_of_twenty() -> None:
    """So quiet a machine that no noise passes the margin."""
    rng, reports = np.random.default_rng(1), 200
    found, within = false_losses(
        [
            [c for c in families.unchanged(rng, 0.003).comparisons if c.family == "speed"]
            for _ in range(reports)
        ]
    )
    assert 0 < within == found <= 0.05 * reports
