"""What the dashboard says, without any of how it looks.

Runs with their reports come in; out come the latest standing of every comparison, worst first,
and what a reader must know beside it. Nothing here reads a disk or knows a widget; ``series``
holds the histories.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Flip, Report, Verdict
from hybridwatch.metric import Metric
from hybridwatch.record.lasting import lasting_label
from hybridwatch.record.run import Answer, Run
from hybridwatch.views.sentence import headline, name_of, open_questions, repeat_command

SEVERITY: Final = (
    Verdict.REGRESSION,
    Verdict.FAILED,
    Verdict.MISSING,
    Verdict.NOT_COMPARABLE,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.EQUIVALENT,
)
"""What to read first. Inconclusive stands above good news: it is never green."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored run as the dashboard needs it.

    Attributes:
        path: Its record.
        run: The run.
        report: Its verdicts; ``None`` when it has no two sides to compare.
        trouble: Why there is no report, in one line.
    """

    path: Path
    run: Run
    report: Report | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest verdict of one comparison on one testbed.

    Attributes:
        entry: The run it comes from.
        verdict: The worst of its metrics.
        sentence: Its report's headline.
    """

    entry: Entry
    verdict: Verdict
    sentence: str


def verdict_of(report: Report) -> Verdict:
    """Give the worst verdict of a report; one without comparisons has nothing to say."""
    found = {comparison.verdict for comparison in report.comparisons}
    return next((verdict for verdict in SEVERITY if verdict in found), Verdict.MISSING)


def worst_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Order comparisons by severity, else as the report has them."""
    return sorted(comparisons, key=lambda comparison: SEVERITY.index(comparison.verdict))


def latest_standings(entries: Sequence[Entry]) -> list[Standing]:
    """Find the newest report of each scenario, pair of builds and testbed.

    Args:
        entries: Oldest first; runs without a report are passed over.

    Returns:
        Bad news first, within one verdict the newest first.
    """
    newest: dict[tuple[str, str, str, str], Entry] = {}
    for entry in entries:
        if entry.report is not None:
            builds = tuple(build.label for build in entry.run.builds)
            newest[(entry.run.scenario.id, builds[0], builds[-1], entry.run.testbed.id)] = entry
    by_age = sorted(newest.values(), key=lambda entry: entry.run.started_at, reverse=True)
    standings = [
        Standing(entry, verdict_of(entry.report), headline(entry.report))
        for entry in by_age
        if entry.report is not None
    ]
    return sorted(standings, key=lambda standing: SEVERITY.index(standing.verdict))


def flips_of(report: Report) -> Iterator[tuple[Metric, tuple[Flip, ...]]]:
    """Yield each accuracy metric whose answers changed, with the answers, losses first."""
    for comparison in report.comparisons:
        if comparison.flips:
            flips = sorted(comparison.flips, key=lambda flip: flip.contender.correct)
            yield comparison.metric, tuple(flips)


def notes_of(report: Report) -> Iterator[tuple[str, list[str]]]:
    """Yield what to know before believing a report: a heading and its lines, if there are any."""
    doubted: dict[str, list[str]] = defaultdict(list)
    for comparison in report.comparisons:
        for doubt in comparison.doubts:
            doubted[doubt].append(name_of(comparison))
    for title, lines in (
        ("Doubts", [f"{', '.join(names)}: {doubt}" for doubt, names in doubted.items()]),
        ("Not settled", list(open_questions(report))),
        ("Failed trials", list(report.failures)),
        ("What differs between the two sides", list(report.differences)),
    ):
        if lines:
            yield title, lines


def repeat_command_of(entry: Entry) -> str:
    """Give the command that measures the same again, quoted for a shell."""
    if entry.report is not None:
        return repeat_command(entry.report)
    words = ["hybridwatch", "run", entry.run.scenario.id]
    for build in entry.run.builds:
        words += ["--build", lasting_label(build)]
    return shlex.join(words)


def age(moment: datetime, now: datetime) -> str:
    """Say how long ago something was, in the largest fitting unit.

    Args:
        moment: Aware time.
        now: Aware time.

    Returns:
        Such as ``3 h ago``; a moment in the future (a clock was wrong) is ``just now``.
    """
    seconds = (now - moment).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def answer_title(side: str, answer: Answer) -> str:
    """Head one side's answer with whether it counted as right."""
    return f"{side}: {'right' if answer.correct else 'wrong'}"
