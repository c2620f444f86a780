"""What a reader must know beside the verdicts of a run: doubts, flipped answers, how to repeat."""

import shlex
from collections import defaultdict
from collections.abc import Iterator

from hybridwatch.analysis.verdict import Flip, Report
from hybridwatch.analysis.wording.labels import name_of
from hybridwatch.history.entry import Entry
from hybridwatch.metrics import Metric
from hybridwatch.records.identity import lasting_label
from hybridwatch.records.run import Answer
from hybridwatch.reports.sentence import open_questions, repeat_command


def render_flips(report: Report) -> Iterator[tuple[Metric, tuple[Flip, ...]]]:
    """Yield each accuracy metric whose answers changed, with the answers, losses first."""
    for comparison in report.comparisons:
        if comparison.flips:
            flips = sorted(comparison.flips, key=lambda flip: flip.contender.correct)
            yield comparison.metric, tuple(flips)


def render_notes(report: Report) -> Iterator[tuple[str, list[str]]]:
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


def render_repeat_command(entry: Entry) -> str:
    """Give the command that measures the same again, quoted for a shell."""
    if entry.report is not None:
        return repeat_command(entry.report)
    words = ["hybridwatch", "run", entry.run.scenario.id]
    for build in entry.run.builds:
        words += ["--build", lasting_label(build)]
    return shlex.join(words)


def answer_title(side: str, answer: Answer) -> str:
    """Head one side's answer with whether it counted as right."""
    return f"{side}: {'right' if answer.correct else 'wrong'}"
