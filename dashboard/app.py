"""The script that Streamlit runs for each reader. Start it with ``hybridwatch dashboard``."""

from warm_up import load

load().draw_app()
