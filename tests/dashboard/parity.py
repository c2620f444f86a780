"""What a document says, piece by piece, to be looked for in a page."""

from collections.abc import Iterator

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.pages.address import HOME, Address, read_query
from hybridwatch.pages.document import (
    Block,
    Chart,
    Code,
    Columns,
    Command,
    Document,
    Facts,
    Filters,
    Folded,
    Line,
    Nights,
    Notice,
    Paragraph,
    Section,
    Table,
    When,
    build_cell,
    pieces,
)


def words_of(document: Document) -> list[str]:
    """Every text of a document, in order."""
    blocks = (*document.warnings, *document.blocks)
    return [document.title, *_line(document.lead), *_all(blocks)]


def read_href(href: str) -> Address:
    """Read a relative address, as ``Address.href`` writes it."""
    path, _, query = href.removeprefix("./").partition("?")
    return read_query(path or HOME, query)


def blocks_of(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Every block, those inside others too."""
    for block in blocks:
        yield block
        if isinstance(block, Section | Folded):
            yield from blocks_of(block.blocks)
        elif isinstance(block, Columns):
            for part in block.parts:
                yield from blocks_of(part)


def _all(blocks: tuple[Block, ...]) -> Iterator[str]:
    for block in blocks_of(blocks):
        yield from filter(None, _own(block))


def _own(block: Block) -> Iterator[str]:  # noqa: C901 (a case for each block)
    match block:
        case Paragraph():
            yield from _line(block.line)
        case Notice():
            yield block.title
            for line in block.lines:
                yield from _line(line)
        case Facts():
            for term, line in block.rows:
                yield term
                yield from _line(line)
        case Table():
            yield block.caption
            yield from (column.name for column in block.columns)
            for row in block.rows:
                for cell in map(build_cell, row):
                    yield from _line(cell.content)
                    yield from _line(cell.under)
        case Chart():
            yield from (block.title, block.description)
        case Nights():
            yield block.caption
            for name, _ in block.rows:
                yield from _line(name)
        case Code() | Command():
            yield from (block.title, block.text)
        case Filters():
            for choice in block.choices:
                yield from (choice.label, choice.chosen_text)
        case Section() | Folded():
            yield block.title
        case Columns():
            pass


def _line(line: Line) -> Iterator[str]:
    for piece in pieces(line):
        match piece:
            case Verdict():
                yield piece.value
            case When():
                yield piece.text
            case str():
                yield piece
            case _:
                yield piece.text
