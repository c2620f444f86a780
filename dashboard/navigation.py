"""The navigation: the pages, the login, and what each page draws."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import streamlit as st
from elements import draw_style
from frame import draw_screen, notice_if_unreachable, open_source, show
from garbage import hidden_from_streamlit
from triage import draw_forms, draw_list_form, find_listed, find_picked

from hybridwatch.orchestration.nightly.access import LOGIN, PEOPLE
from hybridwatch.pages.address import HOME
from hybridwatch.pages.screens import SCREENS

_ALERTS: Final = "alerts"


@hidden_from_streamlit()
def draw_app() -> None:
    """Draw the page that the address names, and the navigation."""
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
    is_allowed = may_read()
    # Pages are registered before the login too, so that the address stays as it is.
    chosen = st.navigation(pages, position="sidebar" if is_allowed else "hidden")
    if is_allowed:
        draw_user()
        chosen.run()
    else:
        draw_login()


def draw_page(screen: str) -> None:
    """Draw a page: one screen. The page of alerts has the forms for answers below it."""
    if screen == _ALERTS:
        with notice_if_unreachable():
            _draw_alerts()
    else:
        show(screen)


def _draw_alerts() -> None:
    alert = find_picked(open_source())
    alerts = find_listed(open_source())
    # In two containers, so that a longer page does not make the browser draw new forms.
    with st.container():
        source = draw_screen(_ALERTS)
    with st.container():
        if alert is not None:
            draw_forms(alert, source)
        else:
            draw_list_form(alerts, source)


def may_read() -> bool:
    """Whether this reader may see records; everyone may where no login is set up."""
    user = _user()
    if not _has_login(user):
        return True
    return bool(user.get("is_logged_in")) and _is_expected(user)


def draw_login() -> None:
    """Draw the login, or for a user who may not see records that they may not."""
    user = _user()
    st.title("hybridwatch")
    if not user.get("is_logged_in"):
        st.text("Please log in to see the records.")
        st.button("Log in", on_click=st.login, type="primary")
        return
    st.text(f"You are logged in as {_name(user)}, who is not among those who may look here.")
    st.button("Log out", on_click=st.logout)


def draw_user() -> None:
    """Draw the user's name and a logout button below the navigation, where a login is set up."""
    user = _user()
    if not _has_login(user):
        return
    with st.sidebar:
        st.text(f"Logged in as {_name(user)}")
        st.button("Log out", on_click=st.logout, type="tertiary")


def _user() -> Mapping[str, Any]:
    return st.user.to_dict()


def _has_login(user: Mapping[str, Any]) -> bool:
    # The first is for a secrets file that was broken or taken away while the server ran.
    return os.environ.get(LOGIN) == "1" or "is_logged_in" in user


def _is_expected(user: Mapping[str, Any]) -> bool:
    """Whether the operator named this user's address; without such a list everyone is expected."""
    expected = os.environ.get(PEOPLE)
    if expected is None:
        return True
    email = str(user.get("email") or "").lower()
    # A provider that reports whether it verified the address must report that it did.
    if "@" not in email or user.get("email_verified") not in (None, True):
        return False
    names = expected.replace(",", " ").lower().split()
    return email in names or f"@{email.rpartition('@')[2]}" in names


def _name(user: Mapping[str, Any]) -> str:
    return str(user.get("name") or user.get("email") or "somebody")
