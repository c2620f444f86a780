"""A document on the live page.

What it says goes through the templates, which escape, and is the same as in the saved page. What
picks among it is a widget of Streamlit. The address is the only state: a widget shows what it says
and writes into it, so links, reloads and the browser's back button just work. A choice is one step
of the browser's history; what a screen fills in by itself is none.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st
from sheet import draw_sheet

from hybridwatch.pages.address import Address
from hybridwatch.pages.csv_export import file_name
from hybridwatch.pages.document import Block, Choice, Document, Filters, Search, Section
from hybridwatch.pages.html import HtmlContext, blocks_html, title_html
from hybridwatch.pages.saved_page import static_page
from hybridwatch.plain_text import visible

_PAGE: Final = "page"
"""The parameter that says which part of a long list is shown."""
_FILTERED: Final = "filter picked"
"""Whether the page is drawn anew because of a filter."""
_WHOLE: Final = "whole address"
"""The address of the view as drawn, with its defaults; what the reader picks changes that one."""


def draw(document: Document, now: datetime) -> None:
    """Draw a document from top to bottom, and make the browser's address tell all of it.

    Args:
        document: What the view says.
        now: Written into the file that the reader may save.
    """
    pen = _pen()
    with st.container(horizontal=True, vertical_alignment="top"):
        html = title_html(document, pen)
        draw_sheet(html, "sheet title", document.address.href() if document.address.screen else "")
        _save(document, now)
    _draw((*document.warnings, *document.blocks), pen, 2, "0")
    st.session_state[_WHOLE] = document.address


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


def _pen() -> HtmlContext:
    return HtmlContext(href=Address.href, local=_zone())


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


def _draw(blocks: Iterable[Block], pen: HtmlContext, level: int, place: str) -> None:
    """Draw blocks; neighbours without filters become one element."""
    for nth, (alive, group) in enumerate(groupby(blocks, _is_alive)):
        if not alive:
            draw_sheet(blocks_html(group, pen, level), f"sheet {place}.{nth}")
            continue
        for each, block in enumerate(group):
            if isinstance(block, Filters):
                _filters(block)
            elif isinstance(block, Section):
                within = f"{place}.{nth}.{each}"
                _draw((Section(block.title, ()),), pen, level, f"{within}.title")
                _draw(block.blocks, pen, level + 1, within)


def _is_alive(block: Block) -> bool:
    """Whether a block is, or has, something that Streamlit has to draw."""
    inside = isinstance(block, Section) and any(map(_is_alive, block.blocks))
    return inside or isinstance(block, Filters)


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


def _search(search: Search) -> None:
    _tell(search.parameter, search.text)
    st.text_input(search.label, key=search.parameter, on_change=_chosen, args=(search.parameter,))


def _chosen(parameter: str, default: str | None = None) -> None:
    """Write into the address what the reader picked, before the page is drawn anew."""
    whole: Address = st.session_state[_WHOLE]
    state = {name: list(whole.values(name)) for name, _ in whole.parameters}
    state.pop(_PAGE, None)  # of another list
    picked = st.session_state[parameter]
    state[parameter] = [] if picked in (default, "") else picked
    st.session_state[_FILTERED] = True
    # At once: each change of its own would be a step of the back button.
    st.query_params.from_dict({name: values for name, values in state.items() if values})
