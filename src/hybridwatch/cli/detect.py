"""``hybridwatch detect``: the change points of a history that anybody measured."""

import io
from dataclasses import replace

import click

from hybridwatch.analysis.change_point import History
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.analysis.change_point.noise import two_levels
from hybridwatch.cli.options import examples, print_json
from hybridwatch.cli.terminal import Console
from hybridwatch.errors import HistoryError
from hybridwatch.formats.read.history_csv import WrittenSeries, read_histories
from hybridwatch.metrics import Direction, Kind
from hybridwatch.reports.detection import DetectionReport, detections_to_json, print_detections

_BAD_NEWS = 1


@click.command(
    "detect",
    epilog=examples(
        "hybridwatch detect history.csv",
        "hybridwatch export --to csv --metric ttft | hybridwatch detect -",
    ),
)
@click.argument("file")
@click.option(
    "--better",
    type=click.Choice([direction.value for direction in Direction]),
    default=Direction.LOWER.value,
    show_default=True,
    help="Which way is better.",
)
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    help="What the values are: exact counts have no noise, and proportions (from 0 to 1) change by "
    "a difference. Anything else changes by a ratio.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(*, file: str, better: str, kind: str | None, as_json: bool) -> None:
    """Find the change points in a CSV FILE ("-" is standard input).

    The header names the columns time and value, series if there are several, and digest where what
    was measured was defined anew: each digest is a series. The columns may be in any order, and
    others are ignored. A time is a number or a date such as
    2026-11-21T09:15:00Z; rows are in order of time. Rows of one series at one time are repeats of
    one run. A series has at most 1,000,000 times, and a value is at most 1e150 on either side of 0.

    A change is suspected from its first points on, and confirmed when more points support it. It
    lies between the times given, with 95 % confidence. The exit status is 1 when the last confirmed
    change of a series, or a drift after it, is for the worse.
    """
    known = None if kind is None else Kind(kind)
    detections = [
        DetectionReport(series, _examined(file, series, known), known, Direction(better))
        for series in _read(file)
    ]
    if as_json:
        print_json(detections_to_json(detections))
    else:
        print_detections(detections, Console())
    if any(detection.worse for detection in detections):
        raise click.exceptions.Exit(_BAD_NEWS)


def _read(file: str) -> tuple[WrittenSeries, ...]:
    try:
        with click.open_file(file, "rb") as stream:
            # A byte order mark, as spreadsheets write it, is no part of the first column's name.
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            return read_histories(lines, file)
    except OSError as error:
        raise HistoryError(f"{file}: cannot be read: {error.strerror or error}") from error


def _examined(file: str, series: WrittenSeries, kind: Kind | None) -> History:
    try:
        found = examine(series.values, kind=kind, spreads=series.spreads)
    except HistoryError as error:
        where = file if series.name is None else f"{file}: series {series.name}"
        raise HistoryError(f"{where}: {error}") from error
    if kind in {Kind.EXACT, Kind.PROPORTION}:
        return found
    two = two_levels(series.repeats or [(value,) for value in series.values], found)
    return replace(found, doubts=(*found.doubts, two.text("{:.4g}".format))) if two else found
