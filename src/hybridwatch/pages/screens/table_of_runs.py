"""A run in a table of a screen, and the way to all of them."""

from collections.abc import Sized

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.runs import RunRow
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Cell, Line, Link


def verdict_cell(row: RunRow) -> Cell:
    """Show the verdict of a run; of one that is bad on purpose, that it is a control."""
    if row.is_control:
        return Cell("control", "bad on purpose")
    return Cell(row.verdict or "no verdict")


def every_run(rows: Sized) -> Line:
    """Lead to the list of every run."""
    return ("See ", Link(plural(len(rows), "run"), address("runs")), " of this store.")
