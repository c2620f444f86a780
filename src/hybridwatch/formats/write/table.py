"""One row for each trial, metric and statistic: CSV and Parquet.

The columns ``series``, ``digest``, ``time`` and ``value`` are those that ``hybridwatch detect``
reads: rows of one run share its time and so are repeats.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hybridwatch.errors import ExportError
from hybridwatch.formats.write.points import ExportedPoint, build_points, render_time
from hybridwatch.records.identity import name_line
from hybridwatch.records.run import Run
from hybridwatch.system.plain_text import csv_cell

COLUMNS: Final = (
    "series", "time", "value", "metric", "statistic", "unit", "better", "scenario", "testbed",
    "build", "release", "run", "side", "trial", "ingested", "line", "digest",
)  # fmt: skip


def to_csv(runs: Iterable[Run]) -> bytes:
    """Give a CSV with a header, rows in order of time; no cell is a formula (``csv_cell``)."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(runs):
        row["time"] = row["time"].isoformat().replace("+00:00", "Z")
        writer.writerow({name: csv_cell(cell) for name, cell in row.items()})
    return text.getvalue().encode()


def to_parquet(runs: Iterable[Run]) -> bytes:
    """Give a Parquet file of the same columns; ``time`` is a timestamp in UTC.

    Raises:
        ExportError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ExportError("parquet: needs pyarrow: pip install 'hybridwatch[parquet]'") from error
    types = {
        "time": pa.timestamp("us", tz="UTC"),
        "value": pa.float64(),
        "side": pa.int8(),
        "trial": pa.int32(),
    }
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(_rows(runs)), schema=schema), buffer)
    return buffer.getvalue()


def _rows(runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    for run in sorted(runs, key=lambda run: (render_time(run), run.id)):
        for point in build_points(run):
            if _is_of_another_night(point):
                continue
            for trial, value in point.values:
                yield _row(point, trial, value)


def _is_of_another_night(point: ExportedPoint) -> bool:
    """Whether it is a line's build of before, which tonight's was held against: no repeat of it."""
    last = point.run.builds[-1]
    return name_line(point.build) == name_line(last) and point.build.label != last.label


def _row(point: ExportedPoint, trial: int, value: float) -> dict[str, Any]:
    run, metric, statistic = point.run, point.subject.metric, point.subject.statistic
    return {
        "series": " ".join([run.scenario.id, run.testbed.id, name_line(point.build), point.name]),
        "time": render_time(run),
        "value": value,
        "metric": metric.id,
        "statistic": statistic,
        "unit": metric.unit.value,
        "better": metric.better.value,
        "scenario": run.scenario.id,
        "testbed": run.testbed.id,
        "build": point.build.label,
        "release": point.build.release,
        "run": run.id,
        "side": point.side,
        "trial": trial,
        "ingested": run.source.format if run.source else "",
        "line": name_line(point.build),
        "digest": run.scenario.digest,
    }
