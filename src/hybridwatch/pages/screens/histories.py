"""The charts of a scenario's screen."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.lines import Line
from hybridwatch.metrics import Metric
from hybridwatch.pages.document import Block, Chart, Columns, FieldKind, Heading, Notice, Paragraph
from hybridwatch.reports.figures.lines import figure_lines


def build_charts(drawn: Sequence[tuple[Subject, list[Line], Chart]]) -> Iterator[Block]:
    """Lay out charts, two side by side, and say how to read them.

    Each metric has at least one line, and the chart of its lines.
    """
    if not drawn:
        yield Notice(FieldKind.QUIET, "Nothing to draw: these builds have none of these metrics")
        return
    yield Paragraph(
        "A line joins medians of one line of builds; the band is where each median lies with 95 % "
        "confidence (all trials where there are fewer than 6). Dots are trials: where there are "
        "many, every k-th of each run and always its lowest and highest; of very many runs those "
        "of the last. A filled triangle is a confirmed change point, an open one a suspected; the "
        "shade around it holds the true moment with 95 %, and a wide shade is a drift. A thin "
        "cross marks a gap: a run is missing, or had no such value. Dotted rules are where a "
        "build's release or fixes changed. Where the scenario's definition changed a new series "
        "begins: no line and no change point crosses it.",
        quiet=True,
    )
    parts: list[tuple[Block, ...]] = [
        (Heading(subject.label), chart, *_doubts(lines)) for subject, lines, chart in drawn
    ]
    for at in range(0, len(parts), 2):
        yield Columns(tuple(parts[at : at + 2]))


def _doubts(lines: Sequence[Line]) -> Iterator[Paragraph]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        for doubt in line.history.doubts if line.is_long_enough else ():
            names[doubt].append(line.title)
    for doubt, held in names.items():
        yield Paragraph(f"{', '.join(held)}: {doubt}", quiet=True)


def build_chart(
    subject: Subject, lines: Sequence[Line], scenario: str, *, over_releases: bool
) -> Chart:
    """Draw a metric with at least one line; files are named by the scenario."""
    metric = subject.metric
    return Chart(
        f"{scenario} {subject.label}",
        figure_lines(lines, metric, over_releases=over_releases),
        " ".join(_line_text(line, metric) for line in lines),
        _data(lines),
        opens_runs=True,
    )


def _line_text(line: Line, metric: Metric) -> str:
    last = numbers.value(float(line.levels["value"].iloc[-1]), metric)
    states = [point.state for point in line.history.points]
    counted = [
        plural(states.count(state), f"{state.value} change")
        for state in HistoryState
        if state in states
    ]
    drifts = len(line.history.drifts)
    counted += [plural(drifts, "drift")] if drifts else []
    nothing = "no change point" if line.is_long_enough else "too few to look for changes"
    return (
        f"{line.title}: {plural(len(line.levels), 'median')}, the last {last}, "
        f"{' and '.join(counted) or nothing}."
    )


def _data(lines: Sequence[Line]) -> Mapping[str, Sequence[object]]:
    """What is drawn, a row for each trial, with the median and band of its side."""
    columns = ("run", "started_at", "build", "release", "side", "trial", "value", "median")
    more = ("low", "high", "n", "record", "revision", "testbed")
    table: dict[str, list[object]] = {"line": []}
    for line in lines:
        table["line"] += [line.title] * len(line.points)
        for name in (*columns, *more):
            table.setdefault(name, []).extend(line.points[name].tolist())
    return table
