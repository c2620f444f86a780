"""The dashboard behind a password; ``hybridwatch dashboard`` starts it when one is set."""

import os

import streamlit as st
from password import Password
from starlette.middleware import Middleware

from hybridwatch.cli.access import PASSWORD

app = st.App("app.py", middleware=[Middleware(Password, password=os.environ[PASSWORD])])
