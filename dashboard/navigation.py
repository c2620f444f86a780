"""The navigation: which pages there are, who has to log in and may look, and what each draws."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import streamlit as st
from elements import draw_style
from frame import draw_screen, show, source_here, told_if_away
from garbage import hidden_from_streamlit
from triage import listed_here, offer, offer_many, picked

from hybridwatch.orchestration.nightly.access import LOGIN, PEOPLE
from hybridwatch.pages.address import HOME
from hybridwatch.pages.screens import SCREENS

_ALERTS: Final = "alerts"


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


def draw_page(screen: str) -> None:
    """Draw a page: one screen. The alerts are answered below theirs."""
    if screen == _ALERTS:
        with told_if_away():
            _draw_alerts()
    else:
        show(screen)


def _draw_alerts() -> None:
    alert = picked(source_here())
    alerts = listed_here(source_here())
    # Each in a place of its own, so that a longer page does not make the browser draw new forms.
    with st.container():
        source = draw_screen(_ALERTS)
    with st.container():
        if alert is not None:
            offer(alert, source)
        else:
            offer_many(alerts, source)


def may_look() -> bool:
    """Whether this reader may see records; everybody may where no login is set up."""
    user = _user()
    if not _is_asked_for(user):
        return True
    return bool(user.get("is_logged_in")) and _is_expected(user)


def ask() -> None:
    """Draw what stands in the place of a page for a reader who may not see it."""
    user = _user()
    st.title("hybridwatch")
    if not user.get("is_logged_in"):
        st.text("Please log in to see the records.")
        st.button("Log in", on_click=st.login, type="primary")
        return
    st.text(f"You are logged in as {_name(user)}, who is not among those who may look here.")
    st.button("Log out", on_click=st.logout)


def tell() -> None:
    """Say below the navigation who is logged in, with a way out; nothing where nobody has to."""
    user = _user()
    if not _is_asked_for(user):
        return
    with st.sidebar:
        st.text(f"Logged in as {_name(user)}")
        st.button("Log out", on_click=st.logout, type="tertiary")


def _user() -> Mapping[str, Any]:
    return st.user.to_dict()


def _is_asked_for(user: Mapping[str, Any]) -> bool:
    # The first is for a secrets file that was broken or taken away while the server ran.
    return os.environ.get(LOGIN) == "1" or "is_logged_in" in user


def _is_expected(user: Mapping[str, Any]) -> bool:
    """Whether an address is among those that the operator named; all are where none was."""
    expected = os.environ.get(PEOPLE)
    if expected is None:
        return True
    email = str(user.get("email") or "").lower()
    # A provider that says whether it made sure of the address must say that it did.
    if "@" not in email or user.get("email_verified") not in (None, True):
        return False
    names = expected.replace(",", " ").lower().split()
    return email in names or f"@{email.rpartition('@')[2]}" in names


def _name(user: Mapping[str, Any]) -> str:
    return str(user.get("name") or user.get("email") or "somebody")
