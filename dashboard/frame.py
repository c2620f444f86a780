"""What every page does: read the address, ask the library for the document, draw it."""

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st
from draw import draw, draw_more, is_filtered
from elements import prepare_charts
from garbage import clean, hidden_from_streamlit
from streamlit.delta_generator import DeltaGenerator

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.database.queries import Index, Say, open_index
from hybridwatch.database.reading import read_stamp
from hybridwatch.errors import DatabaseError, HybridwatchError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.entry import Entry, load_entry
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Notice
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from hybridwatch.records.store import Broken, list_records, results_folder
from hybridwatch.records.store.layout import RESULTS_VARIABLE
from hybridwatch.system.plain_text import visible

_LOOK_S: Final = 10
"""Seconds between two looks at whether the store has grown."""
_FRESH_S: Final = 2
"""Seconds for which a look at a large store, which takes some hundred milliseconds, serves all."""
_FILTERED_S: Final = _LOOK_S + _FRESH_S
"""The same for a filter: it picks from what the page already shows, and must be quick."""
_DRAWN_S: Final = 1
"""Seconds in which a browser draws a page, and needs the processor."""
_NAME: Final = "hybridwatch"
_TELL_S: Final = 0.2
"""Seconds between two looks at how far another reader's reading is."""
_NEVER: Final = -math.inf
_TYPED: Final = ("text ", "until ", "triage name")
"""What the keys of boxes begin with in which people write."""
_MANY: Final = 20
"""New records from which on reading them is worth a bar."""


class _Shelf:
    """The one index that all readers of this server share."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._looked = _NEVER
        self._progress = (0, 0)

    def index(self, old_s: float, say: Say) -> Index:
        """Give the index of a store that was looked at ``old_s`` seconds ago, or later.

        ``say`` gets the progress of whoever reads new records, for this reader or another.
        """
        while not self._lock.acquire(timeout=_TELL_S):
            say(*self._progress)
        try:
            if self._index is None or not self._is_current(self._index, old_s):
                self._index = open_index(self._results, partial(self._proceed, say))
                clean()
                self._looked = time.monotonic()
            return self._index
        finally:
            self._lock.release()

    def _proceed(self, say: Say, done: int, new: int) -> None:
        self._progress = (done, new)
        say(done, new)

    def records(self) -> int:
        """Count the records of the store, as of the last look that every open page takes."""
        with self._lock:
            if self._index is not None and self._is_current(self._index, _LOOK_S - 1):
                return self._index.counts["records"]
        return len(list_records(self._results))

    def _is_current(self, index: Index, old_s: float) -> bool:
        if time.monotonic() - self._looked < old_s:
            return True
        current = index.is_current()
        self._looked = time.monotonic() if current else _NEVER
        return current


class _Bar:
    """A bar that comes when there is progress to show."""

    def __init__(self) -> None:
        self._place: DeltaGenerator | None = None

    def say(self, done: int, new: int) -> None:
        """Show how many of the ``new`` records are read."""
        if new >= _MANY:
            self._place = self._place or st.empty()
            self._place.progress(done / new, f"Reading {plural(new, 'new record')}: {done} done")

    def clear(self) -> None:
        """Take it away."""
        if self._place:
            self._place.empty()


@st.cache_resource(show_spinner=False)
def _shelf(results: Path) -> _Shelf:
    return _Shelf(results)


@st.cache_resource(max_entries=100, show_spinner="Reading the record")
def _read(path: Path, stamp: object) -> Entry | Broken:
    """Read a record once; ``stamp`` differs when its files have changed."""
    del stamp
    return load_entry(path)


@st.cache_resource(ttl=_LOOK_S, show_spinner=False)
def _checkout() -> Checkout:
    return checkout_here()


def _results() -> Path:
    return results_folder(os.environ.get(RESULTS_VARIABLE, "results"))


def open_early() -> None:
    """Open the index before there is a reader; what is wrong with it, the first one is told."""
    with contextlib.suppress(HybridwatchError, OSError):
        _shelf(_results()).index(_FRESH_S, lambda _done, _new: None)


def source_here(*, filtered: bool = False) -> ScreenSource:
    """Give what the screens look at; for a filter, it may be as old as the page."""
    results = _results()
    bar = _Bar()
    index = _shelf(results).index(_FILTERED_S if filtered else _FRESH_S, bar.say)
    bar.clear()
    return ScreenSource(
        results=results,
        index=index,
        now=datetime.now(UTC),
        triage=os.environ.get("HYBRIDWATCH_TRIAGE", ""),
        read=lambda path: _read(path, read_stamp(path)),
        checkout=_checkout,
    )


@st.fragment
def show(screen: str) -> None:
    """Draw a page that is one screen; a filter then leaves the navigation around it alone."""
    with hidden_from_streamlit(), told_if_away():
        draw_screen(screen)


@contextlib.contextmanager
def told_if_away() -> Iterator[None]:
    """Say that the database cannot be reached, and keep what was typed until it can."""
    try:
        yield
    except DatabaseError as error:
        lines = tuple(str(error).splitlines())
        draw_more((Notice("The database cannot be reached", lines),), "away")
        # Streamlit forgets what stands in a box that is not drawn, unless somebody sets it.
        for key in [key for key in st.session_state if str(key).startswith(_TYPED)]:
            st.session_state[key] = st.session_state[key]


def draw_screen(screen: str) -> ScreenSource:
    """Draw one screen, and give what it looked at, for a page that does more."""
    filtered = is_filtered()
    soon = st.empty()
    if SCREENS[screen].figures and not filtered:
        prepare_charts(soon)
    source = source_here(filtered=filtered)
    pairs = [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]
    news = st.container()
    document = open_view(source, Address(screen, tuple(pairs)))
    st.set_page_config(page_title=_tab_title(document.title, SCREENS[screen].title))
    soon.empty()
    draw(document, source.now)
    if document.likely and not filtered:
        _lay_out(source, document.likely)
    with news:
        _watch(source.results, source.index.counts["records"])
    return source


def _tab_title(view: str, screen: str) -> str:
    """Name a view as the browser's tab does: runs and histories of a scenario stay apart."""
    names = [name for name in dict.fromkeys((view, screen)) if name != _NAME]
    return visible(" \N{MIDDLE DOT} ".join((*names, _NAME)))


def _lay_out(source: ScreenSource, likely: Iterable[Address]) -> None:
    """Lay out, while the reader reads, what comes next; what is slow about it is kept."""
    later = threading.Timer(_DRAWN_S, _open, (source, likely))
    later.daemon = True
    later.start()


def _open(source: ScreenSource, views: Iterable[Address]) -> None:
    for each in views:
        open_view(source, each)


@st.fragment(run_every=_LOOK_S)
def _watch(results: Path, known: int) -> None:
    """Say when runs were added since the page was drawn."""
    with hidden_from_streamlit():
        new = _shelf(results).records() - known
    if new > 0:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{plural(new, 'new run')} since you opened this")
            if st.button("Show", type="tertiary"):
                st.rerun()
