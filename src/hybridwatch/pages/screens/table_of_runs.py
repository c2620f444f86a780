"""A run in a table of a screen."""

from hybridwatch.history.runs import Row
from hybridwatch.pages.document import Cell


def verdict_cell(row: Row) -> Cell:
    """Show the verdict of a run; of one that is bad on purpose, that it is a control."""
    if row.is_control:
        return Cell("control", "bad on purpose")
    return Cell(row.verdict or "no verdict")
