"""A run in a table of a screen."""

from hybridwatch.views.document import Cell
from hybridwatch.views.runs import Row


def verdict_cell(row: Row) -> Cell:
    """Show the verdict of a run; of one that is bad on purpose, that it is a control."""
    if row.is_control:
        return Cell("control", "bad on purpose")
    return Cell(row.verdict or "no verdict")
