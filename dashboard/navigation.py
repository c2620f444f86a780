"""The navigation: which pages there are, and who may look at them."""

from functools import partial

import streamlit as st
from elements import draw_style
from garbage import hidden_from_streamlit
from login import ask, may_look, tell
from page import draw_page

from hybridwatch.pages.address import HOME
from hybridwatch.pages.screens import SCREENS


@hidden_from_streamlit()
def draw_app() -> None:
    """Draw the page that the address names, with the navigation beside it."""
    st.set_page_config(page_title="hybridwatch", layout="wide", initial_sidebar_state=230)
    draw_style()
    pages: dict[str, list[st.Page]] = {}
    for screen in SCREENS.values():
        page = st.Page(
            partial(draw_page, screen.name),
            title=screen.title,
            url_path=screen.name,
            default=screen.name == HOME,
            visibility="visible" if screen.listed else "hidden",
        )
        pages.setdefault(screen.section, []).append(page)
    inside = may_look()
    # The page is known also to who has to log in first, so that the address stays what it is.
    chosen = st.navigation(pages, position="sidebar" if inside else "hidden")
    if inside:
        tell()
        chosen.run()
    else:
        ask()
