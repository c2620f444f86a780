"""A table that a narrow terminal shows as well: there each row becomes lines of its own."""

import re
from collections.abc import Iterator
from typing import Final

import rich.table
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.text import Text

_NARROW: Final = 80
"""Below so many columns; from there on tables are made to fit."""
_FOLD: Final = re.compile(r"\n\s*")
_FOLDED_NAME: Final = re.compile(r"(?<=\.)\n\s*")


class StackedTable(rich.table.Table):
    """A table in which no cell is cut and no word is broken, on a terminal of any width."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it, or stack its cells where it does not fit."""
        if options.max_width >= _NARROW or self._needs(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
        else:
            yield from self._stacked(console)

    def _needs(self, console: Console, options: ConsoleOptions) -> int:
        """How wide it is with every word whole, and every line of a column that must not wrap."""
        wide = options.update(max_width=10**4)
        total = len(self.columns) * (self.padding[1] + self.padding[3] + (self.box is not None))
        for column in self.columns:
            widths = [
                Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)
            ]
            total += max(one.maximum if column.no_wrap else one.minimum for one in widths)
        return total

    def _stacked(self, console: Console) -> Iterator[RenderableType]:
        """Yield the first cell of each row, and the others below it under their headings."""
        headings = [_text(console, column.header) for column in self.columns]
        for row in zip(*(column.cells for column in self.columns), strict=True):
            first, *others = (_text(console, cell) for cell in row)
            name = _FOLD.sub(" ", _FOLDED_NAME.sub("", first.plain))
            yield Text(name, style="bold", overflow="fold")
            for heading, cell in zip(headings[1:], others, strict=True):
                if cell.plain.strip():
                    label = f"{heading.plain}: " if heading.plain else ""
                    line = Text(_FOLD.sub(", ", f"{label}{cell.plain}"), style=cell.style)
                    yield Padding(line, (0, 0, 0, 2), expand=False)


def _text(console: Console, cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else console.render_str(str(cell))
