"""A document on the live page.

Text goes through the templates, which escape it; the saved page has the same text. Filters are
widgets of Streamlit. The address is the only state: a widget shows its value and writes into it,
so links, reloads and the browser's back button work. A choice of the reader is one step of the
browser's history; a default that a screen fills in is none.
"""

from collections.abc import Iterable
from dataclasses import replace
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
"""Columns of figures in a row."""
_PAGE: Final = "page"
"""The parameter that says which part of a long list is shown."""
_FILTERED: Final = "filter picked"
"""Whether the page is drawn again because of a filter."""
_VIEW: Final = "whole address"
"""The address of the view as drawn, with its defaults; a choice of the reader changes this one."""


def draw(document: Document, now: datetime) -> None:
    """Draw a document from top to bottom, and write its whole address into the browser.

    ``now`` is written into the file that the reader may save.
    """
    context = _make_context()
    with st.container(horizontal=True, vertical_alignment="top"):
        st.html(str(title_html(document, context)))
        _draw_save_button(document, now)
    _draw((*document.warnings, *document.blocks), context, 2, "0")
    if document.address.screen:
        draw_address(document.address)
    st.session_state[_VIEW] = document.address


def is_filtered() -> bool:
    """Whether the page is drawn again because of a filter; the second call says no."""
    return bool(st.session_state.pop(_FILTERED, False))


def draw_more(blocks: Iterable[Block], place: str) -> None:
    """Draw blocks below a document; ``place`` is a name for them that is unique on the page."""
    _draw(blocks, _make_context(), 2, place)


def _make_context() -> HtmlContext:
    return HtmlContext(href=Address.href, local=_find_time_zone(), files=False)


def _find_time_zone() -> ZoneInfo | None:
    """The reader's time zone, as the browser names it."""
    try:
        return ZoneInfo(st.context.timezone or "")
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None


def _draw_save_button(document: Document, now: datetime) -> None:
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
    """Draw blocks; those without a widget are joined into one element of HTML."""
    waiting: list[Block] = []
    for nth, block in enumerate(blocks):
        here = f"{place}.{nth}"
        if not _needs_streamlit(block):
            waiting.append(block)
            continue
        if isinstance(block, Table):
            waiting.append(block)
        elif isinstance(block, Section):
            waiting.append(Section(block.title, ()))
        _flush(waiting, context, level)
        _draw_widget(block, context, level, here)
    _flush(waiting, context, level)


def _flush(waiting: list[Block], context: HtmlContext, level: int) -> None:
    if waiting:
        st.html(str(blocks_html(waiting, context, level)))
        waiting.clear()


def _draw_widget(block: Block, context: HtmlContext, level: int, place: str) -> None:
    match block:
        case Filters():
            _draw_filters(block)
        case Table():
            draw_csv(block, place)
        case Chart():
            draw_chart(block, context, place)
        case Command():
            draw_command(block)
        case Columns():
            for nth, (column, part) in enumerate(
                zip(_make_columns(block), block.parts, strict=True)
            ):
                with column:
                    _draw(part, context, level, f"{place}.{nth}")
        case Section():
            _draw(block.blocks, context, level + 1, place)
        case Folded(on_phone=True):
            # An element of nothing would still have a gap below it.
            _flush([replace(block, blocks=())] if block.title else [], context, level)
            with st.container(key=f"late {place}"):
                _draw(block.blocks, context, level, place)
        case Folded():
            with st.expander(markdown_of(block.title), key=f"fold {place}"):
                _draw(block.blocks, context, level + 1, place)
        case _:
            pass  # HTML says all of it


def _make_columns(block: Columns) -> list[DeltaGenerator]:
    """Make a column for each part, two in a row, since a figure needs width."""
    width = min(_IN_A_ROW, len(block.parts))
    rows = range(0, len(block.parts), width)
    return [column for _ in rows for column in st.columns(width)][: len(block.parts)]


def _needs_streamlit(block: Block) -> bool:
    """Whether a block is, or holds, something that Streamlit has to draw."""
    match block:
        case Table():
            return bool(block.rows)
        case Section():
            return any(map(_needs_streamlit, block.blocks))
        case Columns():
            return any(_needs_streamlit(each) for part in block.parts for each in part)
        case _:
            return isinstance(block, Filters | Chart | Command | Folded)


def _draw_filters(filters: Filters) -> None:
    with st.container(horizontal=True):
        for choice in filters.choices:
            _draw_choice(choice)


def _draw_choice(choice: ChoiceField) -> None:
    key, options = choice.parameter, list(choice.options)
    arguments = (key, choice.default)
    if choice.many:
        _set_value(key, list(choice.chosen))
        st.multiselect(
            choice.label,
            options,
            format_func=lambda each: visible(choice.options[each]),
            key=key,
            on_change=_write_choice,
            args=arguments,
            placeholder="all",
        )
    elif options:
        _set_value(key, choice.value)
        st.selectbox(
            choice.label,
            options,
            format_func=lambda each: visible(choice.options[each]),
            key=key,
            on_change=_write_choice,
            args=arguments,
        )


def _set_value(key: str, value: str | list[str]) -> None:
    """Make a widget show the address's value; writing the same value again would be slower."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _write_choice(parameter: str, default: str | None) -> None:
    """Write a choice of the reader into the address, before the page is drawn again."""
    view: Address = st.session_state[_VIEW]
    state = {name: list(view.values(name)) for name, _ in view.parameters}
    state.pop(_PAGE, None)  # of another list
    picked = st.session_state[parameter]
    state[parameter] = [] if picked in (default, "") else picked
    st.session_state[_FILTERED] = True
    # At once: each change of its own would be a step of the back button.
    st.query_params.from_dict({name: values for name, values in state.items() if values})
