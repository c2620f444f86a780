"""Change points of histories, on a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from hybridwatch.analysis.change_point import (
    ChangePoint,
    Drift,
    History,
    HistoryState,
    describe_drifts,
)
from hybridwatch.analysis.change_point.examine import ENOUGH_POINTS
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.formats.read.history_csv import WrittenSeries
from hybridwatch.metrics import Direction, Kind
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.reports.table import indented

DETECTION_SCHEMA: Final = 1
_NAMED: Final = 4
"""As many series a closing sentence names before it only counts."""


@dataclass(frozen=True, slots=True)
class DetectionReport:
    """A series, and what was found in it."""

    series: WrittenSeries
    history: History
    kind: Kind | None
    better: Direction

    @property
    def worse(self) -> bool:
        """Whether its last confirmed change or drift is for the worse, so that it still is."""
        sure = [point for point in self.history.points if point.state is HistoryState.CONFIRMED]
        found = [(point.index, point.effect) for point in sure]
        found += [(drift.index, drift.effect) for drift in self.history.drifts]
        return bool(found) and self.better.is_worse(max(found)[1])


def print_detections(detections: Sequence[DetectionReport], console: Console) -> None:
    """Print every change point, what is to be held against the others, and a closing sentence."""
    changed = [one for one in detections if one.history.points or one.history.drifts]
    if any(detection.history.points for detection in changed):
        console.print(_table(changed))
        console.print()
    for doubt in _doubts(detections):
        console.print(indented(doubt))
    worse = [detection for detection in detections if detection.worse]
    style = "bold red" if worse else "yellow" if changed else ""
    console.print(Text(one_line(_conclusion(detections, changed, worse)), style=style))


def _doubts(detections: Sequence[DetectionReport]) -> Iterator[str]:
    """Say each doubt once, with the series that it is about."""
    doubtful: dict[str, list[str]] = {}
    for detection in detections:
        for line in (*_placing(detection), *detection.history.doubts):
            doubtful.setdefault(line, []).append(_name(detection.series))
    for line, names in doubtful.items():
        who = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        yield f"{who}: {line}"


def _placing(detection: DetectionReport) -> Iterator[str]:
    """Say where a change may have been instead, and what is no change at one place."""
    labels = detection.series.labels
    for point in detection.history.points:
        if point.first < point.last:
            at, first, last = (labels[one] for one in (point.index, point.first, point.last))
            yield f"The change at {at} came from {first} to {last} (95 %)."
    yield from describe_drifts(detection.history, labels, is_ratio=_is_relative(detection))


def detections_to_json(detections: Sequence[DetectionReport]) -> dict[str, Any]:
    """Turn detections into plain values; fields as in ``docs/json.md``."""
    return {
        "schema_version": DETECTION_SCHEMA,
        "bad_news": any(detection.worse for detection in detections),
        "series": [_to_json(detection) for detection in detections],
    }


def _to_json(detection: DetectionReport) -> dict[str, Any]:
    history = detection.history
    goes_on = [one for one in history.drifts if one.end == len(detection.series.values) - 1]
    return {
        "series": detection.series.name,
        "n": len(detection.series.values),
        "worse": detection.worse,
        "points": [
            {
                **_placed(detection.series, point),
                "interval": asdict(point.interval),
                "state": point.state.value,
            }
            for point in history.points
        ],
        "drift": goes_on[0].effect if goes_on else None,
        "drifts": [
            {
                **_placed(detection.series, drift),
                "end": drift.end,
                "end_time": detection.series.labels[drift.end],
                "per_point": drift.per_point,
            }
            for drift in history.drifts
        ],
        "doubts": list(history.doubts),
    }


def _placed(series: WrittenSeries, found: ChangePoint | Drift) -> dict[str, Any]:
    return {
        "index": found.index,
        "time": series.labels[found.index],
        "first": found.first,
        "first_time": series.labels[found.first],
        "last": found.last,
        "last_time": series.labels[found.last],
        "effect": found.effect,
    }


def _table(changed: Sequence[DetectionReport]) -> StackedTable:
    table = StackedTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("series", overflow="fold")
    for name in ("since", "point", "change", "state"):
        justify: Literal["left", "right"] = "right" if name in {"point", "change"} else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    for detection in changed:
        for point in detection.history.points:
            table.add_row(*_cells(detection, point))
    return table


def _cells(detection: DetectionReport, point: ChangePoint) -> Iterator[Text]:
    series = detection.series
    worse, sure = detection.better.is_worse(point.effect), point.state is HistoryState.CONFIRMED
    style = ("bold red" if worse else "bold green") if sure else "yellow"
    yield Text(one_line(_name(series)))
    yield Text(one_line(series.labels[point.index]))
    yield Text(str(point.index))
    write = numbers.relative if _is_relative(detection) else numbers.in_own_unit
    yield Text(numbers.level_change(point.effect, point.interval, write))
    yield Text(f"{point.state.value}, {'worse' if worse else 'better'}", style=style)


def _is_relative(detection: DetectionReport) -> bool:
    """Whether the detector gave shares of the level; see ``ChangePoint.effect``."""
    by_difference = detection.kind is not None and not detection.kind.has_noise
    return not by_difference and min(detection.series.values) > 0


def _conclusion(
    detections: Sequence[DetectionReport],
    changed: Sequence[DetectionReport],
    worse: Sequence[DetectionReport],
) -> str:
    total = f"{len(detections)} series"
    if worse:
        named = ", ".join(_name(detection.series) for detection in worse[:_NAMED])
        named += f" and {len(worse) - _NAMED} more" if len(worse) > _NAMED else ""
        return f"Worse since the last confirmed change: {named} ({len(worse)} of {total})."
    longest = max((len(detection.series.values) for detection in detections), default=0)
    if longest < ENOUGH_POINTS:
        return (
            f"Too short to look for a change: {total}, the longest of {plural(longest, 'time')}; "
            f"{ENOUGH_POINTS} are needed."
        )
    if changed:
        return f"{len(changed)} of {total} changed, none confirmed for the worse at last."
    return f"No change point in {total}."


def _name(series: WrittenSeries) -> str:
    return series.name if series.name is not None else "value"
