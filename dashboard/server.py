"""What ``hybridwatch dashboard`` serves: the app, behind a password if set.

Every answer carries our headers, refusals too. Host names are checked before the password.
"""

import os

import streamlit as st
from garbage import look_seldom
from middleware import Headers, KnownPages, NamedHosts, Password
from starlette.middleware import Middleware
from warm_up import start

from hybridwatch.orchestration.nightly.access import HOSTS, PASSWORD, read_hosts

look_seldom()
_password = os.environ.get(PASSWORD)
app = st.App(
    "app.py",
    middleware=[
        Middleware(Headers),
        Middleware(NamedHosts, hosts=read_hosts(os.environ.get(HOSTS, ""))),
        *([Middleware(Password, password=_password)] if _password else []),
        Middleware(KnownPages),
    ],
)
start()
