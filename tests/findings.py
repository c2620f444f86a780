"""What a pull request may bring: what the bot is checked against."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Report
from hybridwatch.reports.escape import Page
from hybridwatch.reports.pull_request import LIMIT, ChangeNews, render
from tests.broken_engines import dead_contender, restless, slow_contender
from tests.builders import a_build, a_run, noisy
from tests.situations import HOSTILE, SITUATIONS

WARN_ELSE: Final = Rule("*", action=Action.WARN)


@dataclass(frozen=True, slots=True)
class Case:
    """ChangeReview, and what the comment that stands there now tells."""

    findings: ChangeReview
    before: ChangeNews | None = None
    limit: int = LIMIT

    def page(self) -> Page:
        """The comment."""
        return render(self.findings, self.before, self.limit)


def named(situation: str, scenario_id: str) -> Report:
    """A situation in another scenario."""
    report = SITUATIONS[situation]()
    return replace(report, scenario=replace(report.scenario, id=scenario_id))


def one(situation: str) -> Callable[[], Case]:
    return lambda: Case(ChangeReview((SITUATIONS[situation](),)))


def mixed() -> Case:
    reports = (
        named("regression", "smoke/padded-graph-rows"),
        named("improvement", "smoke/dummy-run"),
    )
    return Case(ChangeReview(reports))


def warned() -> Case:
    rules = Rule("contract.*"), Rule("tt*", action=Action.WARN), Rule("*", action=Action.WATCH)
    report = named("regression", "smoke/dummy-run")
    slower = tuple(
        c for c in report.comparisons if c.metric.id not in {"contract.padded_rows_prefilling"}
    )
    return Case(ChangeReview((replace(report, comparisons=slower),), (), Policy(rules)))


def no_baseline() -> Case:
    why = "no baseline: run 1f0a9c3e: one side alone cannot be compared: name a second record"
    return Case(ChangeReview((), (Absent("smoke/padded-graph-rows", why),)))


def missing() -> Case:
    lost = Absent("smoke/dummy-run", "missing: there is no record of it; measure it")
    return Case(ChangeReview((SITUATIONS["equivalent"](),), (lost,)))


def dead() -> Case:
    return Case(ChangeReview((build_report(dead_contender()),)))


def dead_in_many() -> Case:
    report = build_report(dead_contender())
    return Case(
        ChangeReview(
            tuple(
                replace(report, scenario=replace(report.scenario, id=f"smoke/number-{number}"))
                for number in range(7)
            )
        ),
        limit=20_000,
    )


def slower() -> Case:
    return Case(ChangeReview((build_report(slow_contender()),)))


def blind() -> Case:
    policy = Policy((Rule("ttft"), Rule("tpot"), Rule("output_throughput"), WARN_ELSE))
    return Case(ChangeReview((build_report(restless()),), (), policy))


def blind_after_bad() -> Case:
    return replace(blind(), before=ChangeNews.BAD)


def seeing() -> Case:
    return Case(ChangeReview((SITUATIONS["equivalent"](),)), ChangeNews.BLIND)


def answers_lost() -> Case:
    sides = {"accuracy.recall": "1" * 200}, {"accuracy.recall": "1" * 192 + "0" * 8}
    return Case(ChangeReview((build_report(a_run(*sides)),)))


def recovered() -> Case:
    return Case(ChangeReview((SITUATIONS["equivalent"](),)), ChangeNews.BAD)


def unsettled() -> Case:
    """A machine that would have seen a change that matters, and too few trials to settle it."""
    sides = ({"tpot": noisy(1.0, 7, 0.03, seed)} for seed in (1, 2))
    return Case(ChangeReview((build_report(a_run(*sides)),)))


def gone() -> Case:
    return replace(unsettled(), before=ChangeNews.GOOD)


def overflow() -> Case:
    """The limit of a comment made small, so that the reviewed text is short."""
    reports = tuple(named("regression", f"smoke/number-{number}") for number in range(3))
    return Case(ChangeReview((*reports, named("equivalent", "smoke/quiet"))), limit=10_000)


def hostile() -> Case:
    report = SITUATIONS["hostile"]()
    bed = replace(report.contender.testbed, id=HOSTILE, cpu_model=HOSTILE, kernel=HOSTILE)
    report = replace(report, contender=replace(report.contender, testbed=bed))
    return Case(ChangeReview((report,), (Absent(HOSTILE, HOSTILE),)))


def nightly() -> Case:
    """Two nights of one build: the commits between them are known."""
    releases = "0.28.1.dev53+g1a2b3c4d5", "0.28.1.dev60+gffff00001"
    builds = (
        replace(a_build("cpu-nightly"), release=release, distribution="vllm")
        for release in releases
    )
    slower = ({"ttft": noisy(level, 10, 0.01)} for level in (0.04, 0.05))
    return Case(ChangeReview((build_report(a_run(*slower, builds=tuple(builds))),)))


CASES: Final[dict[str, Callable[[], Case]]] = {
    "regression": one("regression"),
    "improvement": one("improvement"),
    "unsure": one("unsure"),
    "worse_within": one("worse_within"),
    "equivalent": one("equivalent"),
    "inconclusive": one("inconclusive"),
    "newly_failed": one("failed"),
    "other_testbed": one("other_testbed"),
    "nothing": one("nothing"),
    "mixed": mixed,
    "warned": warned,
    "dead": dead,
    "dead_in_many": dead_in_many,
    "slower": slower,
    "answers_lost": answers_lost,
    "blind": blind,
    "blind_after_bad": blind_after_bad,
    "seeing": seeing,
    "nightly": nightly,
    "no_baseline": no_baseline,
    "missing": missing,
    "recovered": recovered,
    "unsettled": unsettled,
    "gone": gone,
    "overflow": overflow,
    "hostile": hostile,
}
