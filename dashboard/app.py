"""The dashboard's frame: which pages there are. Start it with ``hybridwatch dashboard``."""

import streamlit as st

st.set_page_config(page_title="hybridwatch", layout="wide")
st.navigation([st.Page("screens/latest.py", title="Latest verdicts")], position="hidden").run()
