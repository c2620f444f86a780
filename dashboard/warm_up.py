"""The slow half of a start, done while the first reader's browser still loads Streamlit.

Pandas, SQLAlchemy and the index take about as long as the browser takes until it asks for a page.
"""

import gc
import importlib
import sys
import threading
from types import ModuleType
from typing import Final

from hybridwatch.pages.address import HOME

_SWITCH_S: Final = 0.0005
"""Files are served meanwhile: each waits this long for the interpreter, a few times."""
_loading: Final = threading.Lock()


def load() -> ModuleType:
    """Import what draws pages, the navigation; whoever comes meanwhile waits for all of it."""
    with _loading:
        importlib.import_module(f"hybridwatch.pages.screens.{HOME}")
        return importlib.import_module("navigation")


def start() -> threading.Thread:
    """Begin, beside whatever else the server does; the end of the thread is the end of it."""
    thread = threading.Thread(target=_warm_up, name="warm-up", daemon=True)
    thread.start()
    return thread


def _warm_up() -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()  # what is imported stays
    try:
        load()
        importlib.import_module("frame").open_early()
    finally:
        gc.enable()
        sys.setswitchinterval(switching)
