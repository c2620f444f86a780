"""What a reader may take along from a document: tables and charts as CSV, and names for files."""

import csv
import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from hybridwatch.pages.document import Cell, Chart, Line, Table, When, build_cell, plain
from hybridwatch.system.plain_text import csv_cell

KEPT_CHARTS: Final = 256
"""Charts of which what was written is kept: those of the pages that people look at now."""


def csv_of_table(table: Table) -> str:
    """Write a table as CSV with a heading, numbers as ``raw`` has them."""
    rows = [[_csv_cell(build_cell(cell)) for cell in row] for row in table.rows]
    return _csv([column.name for column in table.columns], rows)


@lru_cache(maxsize=KEPT_CHARTS)
def csv_of_chart(chart: Chart) -> str:
    """Write what a chart draws as CSV with a heading."""
    rows = zip(*chart.data.values(), strict=True)
    return _csv(list(chart.data), [list(row) for row in rows])


def file_name(title: str, suffix: str) -> str:
    """Make a harmless name for a file of a title."""
    slug = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")[:80]
    return f"hybridwatch-{slug or 'view'}{suffix}"


def _csv_cell(cell: Cell) -> object:
    if cell.raw is not None:
        return cell.raw
    parts = [_exact(cell.content), plain(cell.under), " ".join(f"{v:.6g}" for v in cell.sparkline)]
    return " ".join(filter(None, parts))


def _exact(content: Line) -> str:
    if isinstance(content, When):
        return content.moment.astimezone(UTC).isoformat()
    return plain(content)


def _csv(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_csv_value, heading))
    writer.writerows([_csv_value(value) for value in row] for row in rows)
    return out.getvalue()


def _csv_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return csv_cell(value)
