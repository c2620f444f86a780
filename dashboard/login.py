"""Streamlit's own login (OIDC): who has to log in, and who may then look."""

import os
from collections.abc import Mapping
from typing import Any

import streamlit as st

from hybridwatch.orchestration.nightly.access import LOGIN, PEOPLE


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
