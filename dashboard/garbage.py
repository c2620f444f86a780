"""When the server looks for garbage: seldom, and while nobody waits for it.

Streamlit looks through everything that lives after each run of a page and of a part of one. That
takes longer than most pages, and what lives here (modules, the index, what is kept of it) is long.
So whatever lives at the end of a run is put out of its sight; once in a while all of it is seen.
Python's own looks, of which a page of a large store would have a dozen, come as seldom.
"""

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from typing import Final

_EVERY_S: Final = 60.0
"""Seconds between two looks at everything; what pages drop in circles stays until then."""
_LATER_S: Final = 1.0
"""Seconds after a page, in which its reader's browser asks for more."""

_THRESHOLDS: Final = (100_000, 50, 100)
"""Objects made between two of Python's own looks, and how many of these until older ones too."""

_lock: Final = threading.Lock()
_looked = time.monotonic()


def look_seldom() -> None:
    """Make Python's own looks rare; for the process."""
    gc.set_threshold(*_THRESHOLDS)


@contextlib.contextmanager
def hidden_from_streamlit() -> Iterator[None]:
    """Put what lives at the end of a run out of sight of Streamlit's own look."""
    try:
        yield
    finally:
        gc.freeze()
        if _is_time():
            later = threading.Timer(_LATER_S, clean)
            later.daemon = True
            later.start()


def clean() -> None:
    """Look through everything that lives, and put it out of sight again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _is_time() -> bool:
    """Say, to one thread alone, that it was long ago."""
    global _looked
    with _lock:
        now = time.monotonic()
        if now - _looked < _EVERY_S:
            return False
        _looked = now
        return True
