"""A document on the live page.

What only says something goes through ``fragment``, which escapes, and is the same in the static
page. What the reader can act on is a widget of Streamlit. The address is the only state: a widget
shows what it says and writes into it, so links, reloads and the browser's back button just work.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from markupsafe import Markup

from hybridwatch.views.address import Address
from hybridwatch.views.document import (
    Block,
    Chart,
    Choice,
    Columns,
    Command,
    Document,
    Filters,
    Folded,
    Search,
    Section,
    Table,
)
from hybridwatch.views.escape import escape
from hybridwatch.views.fragment import Pen, blocks_html, caption_html, line_html
from hybridwatch.views.static_page import static_page
from hybridwatch.views.style import STYLE
from hybridwatch.views.takeaway import csv_of_chart, csv_of_table, file_name

_ABREAST: Final = 2
"""Parts with charts or tables that stand side by side where there is room."""
_PAGE: Final = "page"
"""The parameter that says which part of a long list is shown."""
_HERE: Final = """
[data-testid=stElementContainer] { transition: none !important; }
:is(.infolayer, .xaxislayer-above, .yaxislayer-above) text { fill: currentColor !important; }
"""
"""Nothing is faded, frame by frame, while a page changes; a figure's words have the page's colour,
also after the reader changes the theme."""
_BUTTONS: Final = ["zoomIn2d", "zoomOut2d", "autoScale2d"]
"""Of a figure, left out: a frame drawn with the zoom button, and two clicks, do the same."""
_FILTERED: Final = "filter picked"
"""Whether the page is drawn anew because of a filter."""
_POINTED: Final = "run pointed at"
"""The run whose point in a figure was clicked, until its page opens."""


def draw(document: Document, now: datetime) -> None:
    """Draw a document from top to bottom, and make the browser's address tell all of it.

    Args:
        document: What the view says.
        now: Written into the file that the reader may save.
    """
    pen = _pen()
    st.html(f"<style>{STYLE}{_HERE}</style>")
    with st.container(horizontal=True, vertical_alignment="top"):
        heading = Markup('<h1 class="hw-title">{}</h1><p class="hw-lead">{}</p>')
        st.html(str(heading.format(document.title, line_html(document.lead, pen))))
        _save(document, now)
    _draw((*document.warnings, *document.blocks), pen, 2, "0")
    _keep(document.address)


def follow_click() -> None:
    """Open the run whose point was clicked in a figure, if one was; then it does not return."""
    if run := st.session_state.pop(_POINTED, ""):
        st.switch_page("screens/run.py", query_params={"run": run})


def is_filtered() -> bool:
    """Say, once, whether the reader picked something in a filter of this very page."""
    return bool(st.session_state.pop(_FILTERED, False))


def draw_more(blocks: Iterable[Block], place: str) -> None:
    """Draw blocks below a document.

    Args:
        blocks: From top to bottom.
        place: A name for them, unlike any other on the page.
    """
    _draw(blocks, _pen(), 2, place)


def _pen() -> Pen:
    return Pen(href=Address.href, draw_chart=lambda _: Markup(""), local=_zone())


def _zone() -> ZoneInfo | None:
    """The reader's time zone, as the browser tells it."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None


def _keep(address: Address) -> None:
    """Complete the browser's address, so that a link to it shows this very view."""
    if not address.screen:
        return
    told = {name: list(address.values(name)) for name, _ in address.parameters}
    here = {name: st.query_params.get_all(name) for name in st.query_params}
    if told != here:
        st.query_params.from_dict(told)


def _save(document: Document, now: datetime) -> None:
    base = (st.context.url or "").rpartition("/")[0] + "/"
    st.download_button(
        "Save as HTML",
        data=lambda: static_page(document, now, base if base != "/" else None),
        file_name=file_name(document.title, ".html"),
        mime="text/html",
        type="tertiary",
        icon=":material/download:",
        help="This view as one file with the same numbers, to send or to keep",
        on_click="ignore",
    )


def _draw(blocks: Iterable[Block], pen: Pen, level: int, place: str) -> None:
    """Draw blocks; neighbours that only say something become one element."""
    for nth, (alive, group) in enumerate(groupby(blocks, _is_alive)):
        if not alive:
            st.html(str(blocks_html(group, pen, level)))
            continue
        for each, block in enumerate(group):
            _draw_alive(block, pen, level, f"{place}.{nth}.{each}")


def _is_alive(block: Block) -> bool:
    match block:
        case Table() | Chart() | Command() | Filters():
            return True
        case Section() | Folded():
            return any(map(_is_alive, block.blocks))
        case Columns():
            return any(_is_alive(each) for part in block.parts for each in part)
        case _:
            return False


def _draw_alive(block: Block, pen: Pen, level: int, place: str) -> None:
    match block:
        case Table():
            _table(block, pen, level, place)
        case Chart():
            _chart(block, place)
        case Command():
            _command(block)
        case Filters():
            _filters(block)
        case Columns():
            _columns(block, pen, level, place)
        case Section():
            st.html(str(blocks_html((Section(block.title, ()),), pen, level)))
            _draw(block.blocks, pen, level + 1, place)
        case Folded():
            with st.expander(_in_label(block.title)):
                _draw(block.blocks, pen, level + 1, place)
        case _:
            raise AssertionError(block)


def _table(table: Table, pen: Pen, level: int, place: str) -> None:
    with st.container(gap="xxsmall"):
        st.html(str(blocks_html((table,), pen, level)))
        if table.rows:
            _csv(lambda: csv_of_table(table), table.caption, place)


def _chart(chart: Chart, place: str) -> None:
    name = file_name(chart.title, "")
    key = f"chart {place}"
    with st.container(gap="xxsmall"):
        st.plotly_chart(
            chart.figure,
            key=key,
            theme=None,
            alt=f"{chart.title}: {chart.description}",
            on_select=partial(_pointed, key) if chart.opens_runs else "ignore",
            selection_mode="points",
            config={
                "displaylogo": False,
                "modeBarButtonsToRemove": _BUTTONS,
                "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2},
            },
        )
        st.html(str(Markup('<p class="hw-p hw-quiet">{}</p>').format(caption_html(chart))))
        _csv(lambda: csv_of_chart(chart), chart.title, place)


def _pointed(key: str) -> None:
    # As a callback, since what is selected stays so: coming back must not open the run again.
    for point in st.session_state[key].selection.points:
        st.session_state[_POINTED] = str(point["customdata"][-1])


def _csv(content: Callable[[], str], title: str, place: str) -> None:
    st.download_button(
        "CSV",
        data=content,
        file_name=file_name(title, ".csv"),
        mime="text/csv",
        key=f"csv {place}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def _command(command: Command) -> None:
    with st.container(gap="xxsmall"):
        if command.title:
            st.html(str(Markup('<div class="hw-quiet">{}</div>').format(command.title)))
        st.code(command.text, language=None, wrap_lines=True)


def _columns(block: Columns, pen: Pen, level: int, place: str) -> None:
    for row in range(0, len(block.parts), _ABREAST):
        parts = block.parts[row : row + _ABREAST]
        for nth, (column, part) in enumerate(zip(st.columns(_ABREAST), parts, strict=False), row):
            with column:
                _draw(part, pen, level, f"{place}.{nth}")


def _filters(filters: Filters) -> None:
    with st.container(horizontal=True):
        for choice in filters.choices:
            if isinstance(choice, Search):
                _search(choice)
            else:
                _pick(choice)


def _pick(choice: Choice) -> None:
    key, options = choice.parameter, list(choice.options)
    told = (key, choice.default)
    if choice.many:
        st.session_state[key] = list(choice.chosen)
        st.multiselect(
            choice.label,
            options,
            format_func=choice.options.__getitem__,
            key=key,
            on_change=_chosen,
            args=told,
            placeholder="all",
        )
    elif options:
        st.session_state[key] = choice.value
        st.selectbox(
            choice.label,
            options,
            format_func=choice.options.__getitem__,
            key=key,
            on_change=_chosen,
            args=told,
        )


def _search(search: Search) -> None:
    st.session_state[search.parameter] = search.text
    st.text_input(search.label, key=search.parameter, on_change=_chosen, args=(search.parameter,))


def _chosen(parameter: str, default: str | None = None) -> None:
    """Write into the address what the reader picked, before the page is drawn anew."""
    state = {name: st.query_params.get_all(name) for name in st.query_params}
    state.pop(_PAGE, None)  # of another list
    picked = st.session_state[parameter]
    state[parameter] = [] if picked in (default, "") else picked
    st.session_state[_FILTERED] = True
    # At once: each change of its own would be a step of the back button.
    st.query_params.from_dict({name: values for name, values in state.items() if values})


def _in_label(text: str) -> str:
    """Write a text where Streamlit reads Markdown and its own :codes:."""
    return escape(text).replace(":", ":\u200b")
