"""Blocks of a document as HTML, the same for the live page and the static one.

``Markup`` escapes whatever ``%`` puts into it, so nothing of a record can become markup or steer
the page: no function here joins texts in another way. A verdict is told by word, symbol and colour.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.csv_export import KEPT_CHARTS, csv_of_chart, csv_of_table, file_name
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Choice,
    Code,
    Column,
    Columns,
    Command,
    Facts,
    Filters,
    Folded,
    Grade,
    Heading,
    Inline,
    Kind,
    Line,
    Link,
    Notice,
    Paragraph,
    Search,
    Section,
    Short,
    Table,
    When,
    cell_of,
    pieces,
    plain,
)
from hybridwatch.pages.markup import Markup
from hybridwatch.report.sentence import MARKS

_IN_DATA: Final = str.maketrans({each: f"%{ord(each):02X}" for each in "%#\t\n\r"})
"""What means something else in a data address, or nothing (RFC 2397; URL Standard, 4.4)."""
_WHOLE: Final = 24
"""Characters up to which a name is not broken."""
_HEIGHT: Final = 450
"""Pixels of a figure that says nothing of it: plotly's own."""
_SPARK_WIDTH: Final = 96
_SPARK_HEIGHT: Final = 22
_SPARK_INSET: Final = 3.0
_SPARK_COLOUR: Final = "#5c86b8"
"""3:1 on white and on near-black: an image does not know the page's ground."""


@dataclass(frozen=True, slots=True)
class HtmlContext:
    """What differs between the pages that blocks are written for.

    Attributes:
        href: Where a view is to be found from here; ``None`` when it cannot be reached.
        local: The reader's time zone, where it is known.
    """

    href: Callable[[Address], str | None]
    local: tzinfo | None = None


def blocks_html(blocks: Iterable[Block], context: HtmlContext, level: int = 2) -> Markup:
    """Write blocks one below the other.

    Args:
        blocks: From top to bottom.
        context: For which page.
        level: Of the headings among them, 2 or deeper.
    """
    return Markup("\n").join(_block(block, context, level) for block in blocks)


def line_html(line: Line, context: HtmlContext) -> Markup:
    """Write a line."""
    return Markup("").join(_inline(piece, context) for piece in pieces(line))


def _block(block: Block, context: HtmlContext, level: int) -> Markup:  # noqa: C901 (a line for each block)
    match block:
        case Heading():
            return _heading(block.text, level)
        case Paragraph():
            return _paragraph(block, context)
        case Notice():
            return _notice(block, context)
        case Facts():
            return _facts(block.rows, context)
        case Table():
            return _table(block, context)
        case Chart():
            return _chart(block, context)
        case Code():
            return _preformatted(block.text, block.title)
        case Command():
            return _command(block)
        case Filters():
            return _filters(block.choices)
        case Columns():
            return _columns(block, context, level)
        case Section():
            inside = blocks_html(block.blocks, context, level + 1)
            return Markup("<section>%s%s</section>") % (_heading(block.title, level), inside)
        case Folded():
            return Markup(
                '<details class="hw-fold"><summary>%s</summary><div>%s</div></details>'
            ) % (block.title, blocks_html(block.blocks, context, level + 1))


def _heading(text: str, level: int) -> Markup:
    tag = f"h{min(level, 6)}"
    return Markup('<%s class="hw-h">%s</%s>') % (tag, text, tag)


def _paragraph(block: Paragraph, context: HtmlContext) -> Markup:
    kind = "hw-p hw-quiet" if block.quiet else "hw-p"
    return Markup('<p class="%s">%s</p>') % (kind, line_html(block.line, context))


def _notice(block: Notice, context: HtmlContext) -> Markup:
    loud = block.kind is Kind.LOUD
    lines = Markup("").join(
        Markup('<div class="hw-line">%s</div>') % (line_html(line, context),)
        for line in block.lines
    )
    return Markup(
        '<div class="hw-notice%s" role="%s"><strong><span aria-hidden="true">%s</span> %s</strong>'
        "%s</div>"
    ) % (
        " hw-loud" if loud else "",
        "alert" if loud else "status",
        "!" if loud else "i",
        block.title,
        lines,
    )


def _facts(rows: Iterable[tuple[str, Line]], context: HtmlContext) -> Markup:
    told = Markup("").join(
        Markup("<div><dt>%s</dt><dd>%s</dd></div>") % (term, line_html(line, context))
        for term, line in rows
    )
    return Markup('<dl class="hw-facts">%s</dl>') % (told,)


def _filters(choices: Iterable[Choice | Search]) -> Markup:
    told = Markup("").join(
        Markup("<div><dt>%s</dt><dd>%s</dd></div>") % (choice.label, choice.told or "any")
        for choice in choices
    )
    return Markup('<dl class="hw-facts hw-filters">%s</dl>') % (told,)


def _columns(block: Columns, context: HtmlContext, level: int) -> Markup:
    parts = Markup("").join(
        Markup("<div>%s</div>") % (blocks_html(part, context, level),) for part in block.parts
    )
    wide = any(isinstance(each, Chart) for part in block.parts for each in part)
    kind = "hw-columns hw-figures" if wide else "hw-columns"
    return Markup('<div class="%s">%s</div>') % (kind, parts)


def _preformatted(text: str, title: str) -> Markup:
    head = Markup('<div class="hw-quiet">%s</div>') % (title,) if title else Markup("")
    return Markup('%s<pre class="hw-code" tabindex="0"><code>%s</code></pre>') % (head, text)


def _command(command: Command) -> Markup:
    return Markup(
        '<div class="hw-command">%s<button type="button" class="hw-copy">Copy</button></div>'
    ) % (_preformatted(command.text, command.title),)


def _chart(chart: Chart, context: HtmlContext) -> Markup:
    return Markup(
        '<figure class="hw-figure">%s<figcaption class="hw-quiet">%s %s</figcaption></figure>'
    ) % (_plot(chart, context), _caption(chart), _file(csv_of_chart(chart), chart.title))


def _plot(chart: Chart, context: HtmlContext) -> Markup:
    runs = context.href(address("run", run="")) if chart.opens_runs else None
    return Markup(
        '<div class="hw-plot" role="figure" aria-label="%s" data-name="%s" data-height="%s"%s>'
        '<script type="application/json">%s</script></div>'
    ) % (
        f"{chart.title}: {chart.description}",
        file_name(chart.title, ""),
        chart.figure.layout.height or _HEIGHT,
        Markup(' data-runs="%s"') % (runs,) if runs else "",
        _json(chart),
    )


@lru_cache(maxsize=KEPT_CHARTS)
def _json(chart: Chart) -> Markup:
    """Write a figure as JSON that no script block can be left from; the page's script reads it."""
    return Markup(chart.figure.to_json().replace("<", "\\u003c"))  # noqa: S704 (see above)


def _caption(chart: Chart) -> Markup:
    """Write what a figure shows; its title, which is drawn in it, only for those who hear it."""
    return Markup('<span class="hw-unseen">%s: </span>%s') % (chart.title, chart.description)


def _table(table: Table, context: HtmlContext) -> Markup:
    """Write a table; on a narrow page each row becomes a card."""
    head = Markup("").join(map(_th, table.columns))
    body = Markup("").join(
        _row(table.columns, [cell_of(cell) for cell in row], place == table.marked, context)
        for place, row in enumerate(table.rows)
    )
    # Roles are spelled out since a style that makes cards of rows takes them away.
    return Markup(
        '<div class="hw-scroll"><table class="hw" role="table"><caption class="%s">%s</caption>'
        '<thead role="rowgroup"><tr role="row">%s</tr></thead>'
        '<tbody role="rowgroup">%s</tbody></table>%s</div>'
    ) % (
        "hw-caption" if table.visible else "hw-unseen",
        table.caption,
        head,
        body,
        _file(csv_of_table(table), table.caption) if table.rows else "",
    )


def _th(column: Column) -> Markup:
    return Markup('<th scope="col" role="columnheader" class="%s"%s>%s</th>') % (
        _kind(column),
        _title(column.title),
        column.name,
    )


def _row(
    columns: Sequence[Column], cells: Sequence[Cell], marked: bool, context: HtmlContext
) -> Markup:
    mark = Markup(' class="hw-chosen" aria-current="true"') if marked else Markup("")
    content = Markup("").join(
        Markup('<td role="cell" class="%s" data-label="%s"%s><div>%s</div></td>')
        % (_kind(column, cell.content), column.name, _title(cell.title), _cell(cell, context))
        for column, cell in zip(columns, cells, strict=True)
    )
    return Markup('<tr role="row"%s>%s</tr>') % (mark, content)


def _cell(cell: Cell, context: HtmlContext) -> Markup:
    parts = [line_html(cell.content, context)]
    if cell.sparkline:
        parts.append(_sparkline(cell.sparkline))
    if pieces(cell.under):
        kind = f"hw-under {_whole(cell.under)}".rstrip()
        parts.append(Markup('<div class="%s">%s</div>') % (kind, line_html(cell.under, context)))
    return Markup("").join(parts)


def _kind(column: Column, content: Line = "") -> str:
    kinds = ("hw-number" if column.number else "", "hw-wide" if column.wide else "")
    return " ".join(filter(None, (*kinds, _whole(content))))


def _whole(line: Line) -> str:
    """Keep a short name on one line, which its hyphens would break."""
    text = plain(line)
    return "hw-whole" if 0 < len(text) <= _WHOLE and " " not in text else ""


def _title(text: str) -> Markup:
    return Markup(' title="%s"') % (text,) if text else Markup("")


def _inline(piece: Inline, context: HtmlContext) -> Markup:
    match piece:
        case str():
            return Markup("%s") % (piece,)
        case When():
            return _time(piece, context)
        case Link():
            return _link(piece, context)
        case Verdict():
            return _pill(piece)
        case Grade():
            return _grade(piece)
        case Short():
            return Markup("<span%s>%s</span>") % (_title(piece.whole), piece.text)


def _pill(verdict: Verdict) -> Markup:
    return Markup(
        '<span class="hw-pill hw-%s"><span aria-hidden="true">%s</span>\N{NO-BREAK SPACE}%s</span>'
    ) % (_slug(verdict), MARKS[verdict], verdict.value)


def _grade(grade: Grade) -> Markup:
    word = grade.verdict.value
    return Markup(
        '<span class="hw-pill hw-%s" title="%s"><span aria-hidden="true">%s</span>'
        '\N{NO-BREAK SPACE}<span class="hw-unseen">%s </span>%s</span>'
    ) % (_slug(grade.verdict), word, MARKS[grade.verdict], word, grade.said)


def _slug(verdict: Verdict) -> str:
    return verdict.name.lower().replace("_", "-")


def _time(when: When, context: HtmlContext) -> Markup:
    hover = [when.utc] if when.shown else []
    if context.local is not None:
        hover.append(f"{when.moment.astimezone(context.local):%Y-%m-%d %H:%M %Z}")
    return Markup('<time datetime="%s"%s>%s</time>') % (
        when.moment.isoformat(),
        _title("\n".join(hover)),
        when.text,
    )


def _link(link: Link, context: HtmlContext) -> Markup:
    href = context.href(link.to) if isinstance(link.to, Address) else _outside(link.to)
    if href is None:
        return Markup('<span class="hw-link">%s</span>') % (link.text,)
    return Markup('<a class="hw-link" href="%s">%s</a>') % (href, link.text)


def _outside(text: str) -> str | None:
    """Give an address out if it can do no harm."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme == "https" and parts.netloc else None


def _file(content: str, title: str) -> Markup:
    return Markup(
        '<a class="hw-file" download="%s" href="data:text/csv;charset=utf-8,%s">CSV'
        '<span class="hw-unseen"> of %s</span></a>'
    ) % (file_name(title, ".csv"), content.translate(_IN_DATA), title)


def _sparkline(values: Sequence[float]) -> Markup:
    """Draw numbers as a small line with a dot at its end."""
    low, high = min(values), max(values)
    inner_w, inner_h = _SPARK_WIDTH - 2 * _SPARK_INSET, _SPARK_HEIGHT - 2 * _SPARK_INSET
    step = inner_w / max(1, len(values) - 1)
    points = [
        (
            _SPARK_INSET + (at * step if len(values) > 1 else inner_w),
            _SPARK_INSET + inner_h * (0.5 if high == low else (high - value) / (high - low)),
        )
        for at, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}">'
        f'<polyline points="{line}" fill="none" stroke="{_SPARK_COLOUR}" stroke-width="1.5"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_SPARK_COLOUR}"/></svg>'
    )
    return Markup(
        '<img class="hw-spark" width="%s" height="%s" alt="%s" src="data:image/svg+xml;base64,%s">'
    ) % (_SPARK_WIDTH, _SPARK_HEIGHT, _read_out(values), base64.b64encode(drawn.encode()).decode())


def _read_out(values: Sequence[float]) -> str:
    if len(values) == 1:
        return "one run so far"
    way = "up" if values[-1] > values[0] else "down" if values[-1] < values[0] else "level"
    return f"{len(values)} runs, {way} from {values[0]:.4g} to {values[-1]:.4g}"
