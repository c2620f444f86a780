"""What a page of the navigation draws: one screen. The alerts are answered below theirs."""

from typing import Final

import streamlit as st
from frame import draw_screen, show, source_here, told_if_away
from triage import offer, picked
from triage_many import listed_here, offer_many

_ALERTS: Final = "alerts"


def draw_page(screen: str) -> None:
    """Draw a page.

    Args:
        screen: The name of what it shows.
    """
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
