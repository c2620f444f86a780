"""Imports and the index, loaded while the first reader's browser still loads Streamlit.

Pandas, SQLAlchemy and the index take about as long as the browser takes to request a page.
"""

import gc
import importlib
import sys
import threading
from types import ModuleType
from typing import Final

from hybridwatch.pages.address import HOME

_SWITCH_S: Final = 0.0005
"""The interpreter's switch interval meanwhile: short, since files are served at the same time."""
_loading: Final = threading.Lock()


def load() -> ModuleType:
    """Import the navigation, which draws pages; concurrent callers wait for the whole import."""
    with _loading:
        importlib.import_module(f"hybridwatch.pages.screens.{HOME}")
        return importlib.import_module("navigation")


def start() -> threading.Thread:
    """Start loading in a thread, and return it."""
    thread = threading.Thread(target=_warm_up, name="warm-up", daemon=True)
    thread.start()
    return thread


def _warm_up() -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()  # imports leave no garbage
    try:
        load()
        importlib.import_module("frame").open_early()
    finally:
        gc.enable()
        sys.setswitchinterval(switching)
