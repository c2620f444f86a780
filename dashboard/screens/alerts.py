"""The page of the screen ``hybridwatch.pages.screens.alerts``, with the forms to answer them."""

import streamlit as st
from frame import draw_screen, source_here
from triage import offer, picked
from triage_many import listed_here, offer_many

alert = picked(source_here())
alerts = listed_here(source_here())
# Each in a place of its own, so that a longer page does not make the browser draw new forms.
with st.container():
    source = draw_screen("alerts")
with st.container():
    if alert is not None:
        offer(alert, source)
    else:
        offer_many(alerts, source)
