"""The contents of a screen, without their looks.

A screen is a function that gives a ``Document``; the live page and the static page both draw that
document, so they cannot differ in a word or a number. Every text is plain text: who draws it
escapes it. Nothing here knows HTML, Streamlit or plotly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.pages.address import Address


@dataclass(frozen=True, slots=True)
class When:
    """An aware moment, written in UTC, or as ``shown`` (``3 h ago``); hover says the rest."""

    moment: datetime
    shown: str = ""

    @property
    def utc(self) -> str:
        """The moment in UTC, to the minute."""
        return f"{self.moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

    @property
    def text(self) -> str:
        """What is written."""
        return self.shown or self.utc


@dataclass(frozen=True, slots=True)
class Link:
    """A way to another view, or to an ``https://`` address; else it shows as text alone."""

    text: str
    to: Address | str


@dataclass(frozen=True, slots=True)
class Grade:
    """A verdict's symbol and colour with other words; its own is read out and shown on hover."""

    verdict: Verdict
    words: str

    @property
    def text(self) -> str:
        """Both, as text alone."""
        return f"{self.verdict.value} {self.words}"


@dataclass(frozen=True, slots=True)
class Short:
    """A text that stands for a longer one, if there is one; a short name is not broken."""

    text: str
    whole: str = ""


Inline: TypeAlias = str | When | Link | Verdict | Grade | Short
"""A piece of a line; a verdict shows as word, symbol and colour."""

Line: TypeAlias = Inline | tuple[Inline, ...]
"""One piece, or several with nothing between them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        under: A second, quieter line.
        title: What hover says, and a screen reader.
        raw: What the CSV says instead of the content, such as a number in base units.
        sparkline: Numbers drawn as a small line after the content, oldest first.
    """

    content: Line = ""
    under: Line = ""
    title: str = ""
    raw: float | str | None = None
    sparkline: tuple[float, ...] = ()


Row: TypeAlias = tuple[Cell | Inline, ...]
"""A row of a table; a bare piece of a line is a cell."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: of numbers or ``wide`` prose; ``title`` is its meaning, on hover."""

    name: str
    number: bool = False
    wide: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A few words."""

    line: Line
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """Something wrong, that must not be overlooked; if ``quiet``, something to know."""

    title: str
    lines: tuple[Line, ...] = ()
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Terms, each with what is to be known of it."""

    rows: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns, of as many cells; a bare name is a column.

    The caption is read out and names the CSV; if ``visible``, it stands over the table. A phone
    shows the first rows, bad news before others, until its reader opens the rest.
    """

    caption: str
    heads: tuple[Column | str, ...]
    rows: tuple[Row, ...]
    visible: bool = False

    def __post_init__(self) -> None:
        """Refuse a row that has more or fewer cells than there are columns."""
        for row in self.rows:
            if len(row) != len(self.heads):
                raise ValueError(f"expected {len(self.heads)} cells, found {len(row)}: {row}")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The heads, each as a column."""
        return tuple(Column(head) if isinstance(head, str) else head for head in self.heads)


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A figure; equal only to itself, so that what was written of it can be kept.

    Attributes:
        figure: Of plotly; made by ``base_figure``, with every text escaped.
        description: What is to be seen, for a reader who does not see it; stands under the figure.
        data: What is drawn, for the CSV: values by column.
        opens_runs: Whether a click on a point of the live page opens its run, whose id is then the
            last of the point's ``customdata``.
    """

    title: str
    figure: Any
    description: str
    data: Mapping[str, Sequence[object]]
    opens_runs: bool = False


@dataclass(frozen=True, slots=True)
class NightCell:
    """What a row shows of one night: the worst verdict, if anything was judged.

    Attributes:
        title: All of it in words, for hover and for a screen reader.
        to: The run that says more.
        is_of_releases: Whether two releases were compared.
        is_partly_open: Whether something that does not decide the verdict is undecided.
    """

    verdict: Verdict | None
    title: str
    to: Address | None = None
    is_machine_new: bool = False
    is_of_releases: bool = False
    is_partly_open: bool = False


@dataclass(frozen=True, slots=True)
class Nights:
    """A picture of nights, the oldest first, with a row for each thing that is measured.

    On a phone only the last fortnight is shown.
    """

    caption: str
    nights: tuple[date, ...]
    rows: tuple[tuple[Line, tuple[NightCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A text whose every blank counts, such as an answer; kept as it is."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A text to take along: a command line, a path. Has a button that copies it."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceField:
    """Something that the reader may pick; ``ViewQuery`` has checked what is chosen.

    Attributes:
        options: What there is: what the address says, and what the reader sees.
        many: Whether any number may be chosen; none stands for all.
        default: What an address means that says nothing of it.
    """

    label: str
    parameter: str
    options: Mapping[str, str]
    chosen: tuple[str, ...]
    many: bool = False
    default: str | None = None

    @property
    def value(self) -> str:
        """What is chosen; empty when nothing is."""
        return self.chosen[0] if self.chosen else ""

    @property
    def chosen_text(self) -> str:
        """What is chosen, in the reader's words."""
        return ", ".join(self.options[each] for each in self.chosen) or ("all" if self.many else "")


@dataclass(frozen=True, slots=True)
class Filters:
    """Choices side by side."""

    choices: tuple[ChoiceField, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Parts side by side, one below the other where there is no room."""

    parts: tuple[tuple["Block", ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part with a title."""

    title: str
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """A part that opens on a click.

    If ``on_phone``, a wide page shows it whole, and a click on any title of these opens all of
    them on a phone. One on each page needs a title.
    """

    title: str
    blocks: tuple["Block", ...]
    on_phone: bool = False


Block: TypeAlias = (
    Paragraph
    | Notice
    | Facts
    | Table
    | Chart
    | Nights
    | Code
    | Command
    | Filters
    | Columns
    | Section
    | Folded
)


@dataclass(frozen=True, slots=True)
class Document:
    """Everything that one view says.

    Attributes:
        lead: One line under the title: what this rests on.
        address: The whole state of the view; a link to it shows the same.
        complaints: What the address names and cannot be given, a line each.
        likely: Views that the reader may well open next, so that they can be laid out already.
    """

    title: str
    blocks: tuple[Block, ...]
    lead: Line = ""
    address: Address = field(default=Address("", ()))
    complaints: tuple[str, ...] = ()
    likely: tuple[Address, ...] = ()

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What stands before the blocks: the complaints, if there are any."""
        title = "This link cannot be shown quite as it is"
        return (Notice(title, self.complaints),) if self.complaints else ()


def by_column(
    names: Sequence[str], rows: Sequence[Sequence[object]]
) -> Mapping[str, Sequence[object]]:
    """Turn rows into what a chart draws: values by column."""
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def pieces(line: Line) -> tuple[Inline, ...]:
    """Give the pieces of a line; none of an empty one."""
    if isinstance(line, tuple):
        return line
    return () if line == "" else (line,)


def plain(line: Line) -> str:
    """Write a line as text alone."""
    return "".join(map(_plain, pieces(line)))


def build_cell(cell: Cell | Inline) -> Cell:
    """Make a cell of a bare piece of a line."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def _plain(piece: Inline) -> str:
    match piece:
        case str():
            return piece
        case When() | Link() | Grade() | Short():
            return piece.text
        case Verdict():
            return piece.value
