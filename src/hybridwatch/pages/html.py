"""Blocks of a document as HTML, the same for the live page and the saved one.

The HTML stands in ``templates``; this module prepares what goes into it. Jinja escapes every text
there (autoescape), and characters that cannot be seen become escapes before, so nothing of a record
can become markup or steer the page. A name of a template that gets no value is an error.
"""

import base64
import csv
import hashlib
import io
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.numbers import ABSENT
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Column,
    Columns,
    Document,
    Folded,
    Grade,
    Inline,
    Line,
    Link,
    Section,
    Table,
    When,
    build_cell,
    pieces,
    plain,
)
from hybridwatch.reports.sentence import MARKS
from hybridwatch.system.plain_text import csv_cell, visible

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
_PHONE_LINES: Final = 32
"""Cells of a table that a phone shows at first; prose counts as three."""
KEPT_CHARTS: Final = 256
"""Charts of which what was written is kept: those of the pages that people look at now."""
_HERE: Final = files("hybridwatch.pages")
SCRIPT: Final = _HERE.joinpath("saved_page.js").read_text(encoding="utf-8")
"""What pages do that no server stands behind."""
GROUND: Final = _HERE.joinpath("saved_page.css").read_text(encoding="utf-8")
"""How such pages look around their blocks."""
STYLE: Final = _HERE.joinpath("style.css").read_text(encoding="utf-8")
"""How blocks look, on the live page and on the static one.

Colours are our own only where they mean something; ground and type are the page's. Loud is what a
person must act on: solid pills. Everything else is drawn in outline, and its line differs, too.
What is quiet has a soft colour, not ``opacity``: a browser composes each such element by itself.
"""


@dataclass(frozen=True, slots=True)
class HtmlContext:
    """What differs between the pages that blocks are written for.

    Attributes:
        href: Where a view is to be found from here; ``None`` when it cannot be reached.
        local: The reader's time zone, where it is known.
        files: Whether a link may hold a table's or a figure's CSV; else the page offers it.
        dated: Whether a day stands where the document has an age, since the page is kept.
        packed: Whether figures and CSV are compressed, and tables name no roles; the page's script
            unpacks and names them.
        is_run_there: Whether a run has a page where ``href`` leads to.
        run_suffix: What stands behind a run's id in the address of its page.
    """

    href: Callable[[Address], str | None]
    local: tzinfo | None = None
    files: bool = True
    dated: bool = False
    packed: bool = False
    is_run_there: Callable[[str], bool] = lambda _: True
    run_suffix: str = ""

    @property
    def run_href(self) -> str | None:
        """Where runs are to be found, but for the id at its end."""
        return self.href(address("run", run=""))


def blocks_html(blocks: Iterable[Block], context: HtmlContext, level: int = 2) -> Markup:
    """Write blocks one below the other; their headings are of ``level`` 2 or deeper."""
    return _macro("blocks", context, blocks, level)


def title_html(document: Document, context: HtmlContext) -> Markup:
    """Write a document's title with the line under it."""
    return _macro("title", context, document)


def caption_html(chart: Chart, context: HtmlContext) -> Markup:
    """Write what stands under a figure."""
    return _macro("caption", context, chart)


def _macro(name: str, context: HtmlContext, *arguments: object) -> Markup:
    template = ENVIRONMENT.get_template("blocks.html")
    written: Markup = getattr(template.make_module({"context": context}), name)(*arguments)
    return written


def _href(to: Address | str, context: HtmlContext) -> str | None:
    """Give an address out only if it can do no harm."""
    if isinstance(to, Address):
        return context.href(to)
    try:
        parts = urlsplit(to)
    except ValueError:
        return None
    return to if parts.scheme == "https" and parts.netloc else None


def _moment_text(when: When, context: HtmlContext) -> str:
    return when.utc[:10] if when.shown and context.dated else when.text


def _runs_missing(chart: Chart, context: HtmlContext) -> str:
    """Name the runs of a chart's points that have no page."""
    runs = dict.fromkeys(str(run) for run in chart.data.get("run", ()))
    return " ".join(run for run in runs if not context.is_run_there(run))


def _packed(text: str) -> str:
    """Compress a text for the page's script: deflate in zlib's format, then base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _hover_times(when: When, local: tzinfo | None) -> str:
    times = [when.utc] if when.shown else []
    if local is not None:
        times.append(f"{when.moment.astimezone(local):%Y-%m-%d %H:%M %Z}")
    return "\n".join(times)


@lru_cache(maxsize=KEPT_CHARTS)
def _figure_json(chart: Chart) -> Markup:
    """Write a figure as JSON that no script block can be left from; the page's script reads it."""
    return Markup(chart.figure.to_json().replace("<", "\\u003c"))  # noqa: S704 (see above)


def _cell_class(column: Column, content: Line = "") -> str:
    is_given = {
        "hw-number": column.number,
        "hw-wide": column.wide,
        "hw-whole": _unbroken(content),
        "hw-none": content == ABSENT,
    }
    return " ".join(name for name, given in is_given.items() if given)


def _unbroken(line: Line) -> bool:
    """Whether a line is a short name, to be kept on one line; its hyphens would break it."""
    text = plain(line)
    return 0 < len(text) <= _WHOLE and " " not in text


def _more_rows(table: Table) -> frozenset[int]:
    """Number the rows that a phone keeps back: the last, of which bad news comes last."""
    first = max(3, _PHONE_LINES // sum(3 if column.wide else 1 for column in table.columns))
    is_bad = [any(map(_is_bad, pieces(build_cell(row[0]).content))) for row in table.rows]
    ordered = sorted(range(len(is_bad)), key=lambda at: not is_bad[at])
    return frozenset(ordered[first:])


def _has_links(table: Table) -> bool:
    cells = map(build_cell, chain(*table.rows))
    lines = chain.from_iterable((cell.content, cell.under) for cell in cells)
    return any(isinstance(piece, Link) for line in lines for piece in pieces(line))


def _is_bad(piece: Inline) -> bool:
    verdict = piece.verdict if isinstance(piece, Grade) else piece
    return isinstance(verdict, Verdict) and verdict.is_bad_news


def _spark(values: Sequence[float]) -> dict[str, object]:
    """Lay out a small line with a dot at its end, in pixels."""
    low, high = min(values), max(values)
    inner_w, inner_h = _SPARK_WIDTH - 2 * _SPARK_INSET, _SPARK_HEIGHT - 2 * _SPARK_INSET
    step = inner_w / max(1, len(values) - 1)
    points = [
        (
            f"{_SPARK_INSET + (at * step if len(values) > 1 else inner_w):.1f}",
            f"{_SPARK_INSET + inner_h * (0.5 if high == low else (high - v) / (high - low)):.1f}",
        )
        for at, v in enumerate(values)
    ]
    way = "up" if values[-1] > values[0] else "down" if values[-1] < values[0] else "level"
    spoken = f"{len(values)} runs, {way} from {values[0]:.4g} to {values[-1]:.4g}"
    return {
        "line": " ".join(map(",".join, points)),
        "x": points[-1][0],
        "y": points[-1][1],
        "alt": spoken if len(values) > 1 else "one run so far",
        "width": _SPARK_WIDTH,
        "height": _SPARK_HEIGHT,
        "colour": _SPARK_COLOUR,
    }


def csv_of_table(table: Table) -> str:
    """Write a table as CSV with a heading, numbers as ``raw`` has them."""
    rows = (map(_csv_cell, map(build_cell, row)) for row in table.rows)
    return _csv([column.name for column in table.columns], *rows)


@lru_cache(maxsize=KEPT_CHARTS)
def csv_of_chart(chart: Chart) -> str:
    """Write what a chart draws as CSV with a heading."""
    return _csv(chart.data, *zip(*chart.data.values(), strict=True))


def file_name(title: str, suffix: str) -> str:
    """Make a harmless name for a file of a title."""
    slug = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")[:80]
    return f"hybridwatch-{slug or 'view'}{suffix}"


def _csv_cell(cell: Cell) -> object:
    if cell.raw is not None:
        return cell.raw
    parts = [_exact(cell.content), _exact(cell.under), " ".join(f"{v:.6g}" for v in cell.sparkline)]
    return " ".join(filter(None, parts))


def _exact(line: Line) -> str:
    """Write a line as text, its moments whole: an age would be wrong when the file is read."""
    return "".join(
        piece.moment.astimezone(UTC).isoformat() if isinstance(piece, When) else plain(piece)
        for piece in pieces(line)
    )


def _csv(*rows: Iterable[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_csv_value, row) for row in rows)
    return out.getvalue()


def _csv_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return csv_cell(value)


def static_page(document: Document, now: datetime | None = None, base: str | None = None) -> str:
    """Write a view as a whole HTML page, with an aware ``now`` if it is a file.

    ``base`` is where the dashboard is, with its last slash; without it links to views are none.
    """
    from hybridwatch.reports.figures.base import plotly_script  # the live page has its own

    drawn = any(isinstance(block, Chart) for block in all_blocks(document.blocks))
    scripts = ([plotly_script()] if drawn else []) + [SCRIPT]
    return ENVIRONMENT.get_template("page.html").render(
        context=HtmlContext(
            lambda to: None if base is None else base + to.href().removeprefix("./")
        ),
        document=document,
        foot=_foot(document, now) if now else (),
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (plotly's and our own)
        style=Markup(GROUND + STYLE),  # noqa: S704 (our own)
    )


def _foot(document: Document, now: datetime) -> tuple[str | When, ...]:
    query = document.address.query()
    words = ["hybridwatch", "page", document.address.screen, *(["--query", query] if query else [])]
    return ("Written ", When(now), f" by {shlex.join(words)}")


def _policy(scripts: list[str]) -> str:
    allowed = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def all_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """Go through blocks and the blocks within them."""
    for block in blocks:
        yield block
        if isinstance(block, Section | Folded):
            yield from all_blocks(block.blocks)
        elif isinstance(block, Columns):
            yield from all_blocks(chain(*block.parts))


ENVIRONMENT: Final = Environment(
    loader=PackageLoader("hybridwatch.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    # What is HTML already stays.
    finalize=lambda value: value if hasattr(value, "__html__") else visible(str(value)),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    auto_reload=False,
)
"""The templates, and what they may call."""


ENVIRONMENT.filters |= {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "cell_class": _cell_class,
    "cells": lambda row, columns: zip(columns, map(build_cell, row), strict=True),
    "csv_of_chart": csv_of_chart,
    "csv_of_table": csv_of_table,
    "data_href": lambda csv: "data:text/csv;charset=utf-8," + csv.translate(_IN_DATA),
    "figure_json": _figure_json,
    "file_name": file_name,
    "has_links": _has_links,
    "has_figures": lambda columns: any(isinstance(one, Chart) for one in chain(*columns.parts)),
    "height": lambda chart: int(chart.figure.layout.height or _HEIGHT),
    "hover_times": _hover_times,
    "href": _href,
    "kind": lambda thing: type(thing).__name__,
    "moment_text": _moment_text,
    "more_rows": _more_rows,
    "packed": _packed,
    "mark": MARKS.__getitem__,
    "pieces": pieces,
    "runs_missing": _runs_missing,
    "slug": lambda verdict: verdict.name.lower().replace("_", "-"),
    "spark": _spark,
    "unbroken": _unbroken,
}
