"""A document on the live page.

What it says goes through the templates, which escape, and is the same as in the saved page. What
picks among it is a widget of Streamlit. The address is the only state: a widget shows what it says
and writes into it, so links, reloads and the browser's back button just work. A choice is one step
of the browser's history; what a screen fills in by itself is none.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from elements import draw_address, draw_chart, draw_command, draw_csv, markdown_of
from streamlit.delta_generator import DeltaGenerator

from hybridwatch.pages.address import Address
from hybridwatch.pages.document import (
    Block,
    Chart,
    ChoiceField,
    Columns,
    Command,
    Document,
    Filters,
    Folded,
    Section,
    Table,
)
from hybridwatch.pages.html import HtmlContext, blocks_html, file_name, static_page, title_html
from hybridwatch.system.plain_text import visible

_IN_A_ROW: Final = 2
"""Parts side by side."""
_PAGE: Final = "page"
"""The parameter that says which part of a long list is shown."""
_FILTERED: Final = "filter picked"
"""Whether the page is drawn again because of a filter."""
_WHOLE: Final = "whole address"
"""The address of the view as drawn, with its defaults; what the reader picks changes that one."""


def draw(document: Document, now: datetime) -> None:
    """Draw a document from top to bottom, and make the browser's address tell all of it.

    ``now`` is written into the file that the reader may save.
    """
    pen = _pen()
    with st.container(horizontal=True, vertical_alignment="top"):
        st.html(str(title_html(document, pen)))
        _save(document, now)
    _draw((*document.warnings, *document.blocks), pen, 2, "0")
    if document.address.screen:
        draw_address(document.address)
    st.session_state[_WHOLE] = document.address


def is_filtered() -> bool:
    """Say, once, whether the reader picked something in a filter of this very page."""
    return bool(st.session_state.pop(_FILTERED, False))


def draw_more(blocks: Iterable[Block], place: str) -> None:
    """Draw blocks below a document; ``place`` names them, unlike any others on the page."""
    _draw(blocks, _pen(), 2, place)


def _pen() -> HtmlContext:
    return HtmlContext(href=Address.href, local=_zone(), files=False)


def _zone() -> ZoneInfo | None:
    """The reader's time zone, as the browser tells it."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None


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


def _draw(blocks: Iterable[Block], context: HtmlContext, level: int, place: str) -> None:
    """Draw blocks; what Streamlit need not know of is joined into one element of HTML."""
    waiting: list[Block] = []
    for nth, block in enumerate(blocks):
        here = f"{place}.{nth}"
        if not _is_alive(block):
            waiting.append(block)
            continue
        if isinstance(block, Table):
            waiting.append(block)
        elif isinstance(block, Section):
            waiting.append(Section(block.title, ()))
        _flush(waiting, context, level)
        _draw_alive(block, context, level, here)
    _flush(waiting, context, level)


def _flush(waiting: list[Block], context: HtmlContext, level: int) -> None:
    if waiting:
        st.html(str(blocks_html(waiting, context, level)))
        waiting.clear()


def _draw_alive(block: Block, context: HtmlContext, level: int, place: str) -> None:
    match block:
        case Filters():
            _filters(block)
        case Table():
            draw_csv(block, place)
        case Chart():
            draw_chart(block, context, place)
        case Command():
            draw_command(block)
        case Columns():
            for nth, (column, part) in enumerate(zip(_columns(block), block.parts, strict=True)):
                with column:
                    _draw(part, context, level, f"{place}.{nth}")
        case Section():
            _draw(block.blocks, context, level + 1, place)
        case Folded():
            with st.expander(markdown_of(block.title), key=f"fold {place}"):
                _draw(block.blocks, context, level + 1, place)
        case _:
            pass  # HTML says all of it


def _columns(block: Columns) -> list[DeltaGenerator]:
    """Make a place for each part, two in a row, since a figure needs width."""
    width = min(_IN_A_ROW, len(block.parts))
    rows = range(0, len(block.parts), width)
    return [column for _ in rows for column in st.columns(width)][: len(block.parts)]


def _is_alive(block: Block) -> bool:
    """Whether a block is, or has, something that Streamlit has to draw."""
    match block:
        case Table():
            return bool(block.rows)
        case Section():
            return any(map(_is_alive, block.blocks))
        case Columns():
            return any(_is_alive(each) for part in block.parts for each in part)
        case _:
            return isinstance(block, Filters | Chart | Command | Folded)


def _filters(filters: Filters) -> None:
    with st.container(horizontal=True):
        for choice in filters.choices:
            _pick(choice)


def _pick(choice: ChoiceField) -> None:
    key, options = choice.parameter, list(choice.options)
    told = (key, choice.default)
    if choice.many:
        _tell(key, list(choice.chosen))
        st.multiselect(
            choice.label,
            options,
            format_func=lambda each: visible(choice.options[each]),
            key=key,
            on_change=_chosen,
            args=told,
            placeholder="all",
        )
    elif options:
        _tell(key, choice.value)
        st.selectbox(
            choice.label,
            options,
            format_func=lambda each: visible(choice.options[each]),
            key=key,
            on_change=_chosen,
            args=told,
        )


def _tell(key: str, value: str | list[str]) -> None:
    """Make a widget show what the address says; one that does is left alone, which is quicker."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _chosen(parameter: str, default: str | None) -> None:
    """Write into the address what the reader picked, before the page is drawn again."""
    whole: Address = st.session_state[_WHOLE]
    state = {name: list(whole.values(name)) for name, _ in whole.parameters}
    state.pop(_PAGE, None)  # of another list
    picked = st.session_state[parameter]
    state[parameter] = [] if picked in (default, "") else picked
    st.session_state[_FILTERED] = True
    # At once: each change of its own would be a step of the back button.
    st.query_params.from_dict({name: values for name, values in state.items() if values})
