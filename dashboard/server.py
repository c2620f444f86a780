"""What ``hybridwatch dashboard`` serves: the app and plotly's script, behind a password if set."""

import os

import streamlit as st
from password import Password
from policy import Policy
from sheet import plotly_path, serve_plotly
from starlette.middleware import Middleware
from starlette.routing import Route

from hybridwatch.cli.access import PASSWORD

_password = os.environ.get(PASSWORD)
app = st.App(
    "app.py",
    routes=[Route(plotly_path(), serve_plotly)],
    middleware=[
        *([Middleware(Password, password=_password)] if _password else []),
        Middleware(Policy),
    ],
)
