"""What ``hybridwatch dashboard`` serves: the app and plotly's script, behind a password if set.

Every answer carries the policy, refusals too; names are looked at before anybody is asked for a
password.
"""

import os

import streamlit as st
from hosts import NamedHosts
from password import Password
from policy import Policy
from sheet import plotly_path, serve_plotly
from starlette.middleware import Middleware
from starlette.routing import Route

from hybridwatch.watch.access import PASSWORD
from hybridwatch.watch.hosts import HOSTS, read_hosts

_password = os.environ.get(PASSWORD)
app = st.App(
    "app.py",
    routes=[Route(plotly_path(), serve_plotly)],
    middleware=[
        Middleware(Policy),
        Middleware(NamedHosts, hosts=read_hosts(os.environ.get(HOSTS, ""))),
        *([Middleware(Password, password=_password)] if _password else []),
    ],
)
