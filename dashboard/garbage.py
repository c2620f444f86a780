"""Collects garbage rarely, between pages.

Streamlit collects garbage after each run of a page or fragment. With the objects that live long
here (modules, the index, caches) that takes longer than most pages. So objects that are alive at
the end of a run are frozen, and a full collection comes once a minute. Python's own collections,
a dozen for a page of a large store, are made as rare.
"""

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from typing import Final

_EVERY_S: Final = 60.0
"""Seconds between two full collections; reference cycles that pages drop stay until then."""
_LATER_S: Final = 1.0
"""Seconds between a page and a full collection: the browser's next requests come first."""

_THRESHOLDS: Final = (100_000, 50, 100)
"""Arguments of ``gc.set_threshold``."""

_lock: Final = threading.Lock()
_looked = time.monotonic()


def look_seldom() -> None:
    """Make Python's own collections rare in this process."""
    gc.set_threshold(*_THRESHOLDS)


@contextlib.contextmanager
def hidden_from_streamlit() -> Iterator[None]:
    """Hide the objects alive at the end of a run from Streamlit's own collection."""
    try:
        yield
    finally:
        gc.freeze()
        if _is_time():
            later = threading.Timer(_LATER_S, clean)
            later.daemon = True
            later.start()


def clean() -> None:
    """Collect all garbage, and hide the remaining objects again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _is_time() -> bool:
    """Whether a full collection is due; true for one thread only."""
    global _looked
    with _lock:
        now = time.monotonic()
        if now - _looked < _EVERY_S:
            return False
        _looked = now
        return True
