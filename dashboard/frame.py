"""A page of one screen: reads the address, builds the document, draws it."""

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

from hybridwatch.analysis.wording.numbers import plural
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

_CHECK_S: Final = 10
"""Seconds between two checks whether the store has grown."""
_FRESH_S: Final = 2
"""Seconds for which one check of a large store, some hundred milliseconds, serves all readers."""
_FILTERED_S: Final = _CHECK_S + _FRESH_S
"""The same for a filter: it picks from what the page already shows, and must be quick."""
_DRAWN_S: Final = 1
"""Seconds in which a browser draws a page, and needs the processor."""
_NAME: Final = "hybridwatch"
_PROGRESS_S: Final = 0.2
"""Seconds between two updates of the progress while another reader's thread reads records."""
_NEVER: Final = -math.inf
_TYPED: Final = ("text ", "until ", "triage name")
"""Beginnings of the keys of text fields."""
_MANY: Final = 20
"""From this many new records on, a progress bar is shown."""


class _SharedIndex:
    """The one index that all readers of this server share."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._checked = _NEVER
        self._progress = (0, 0)

    def index(self, max_age_s: float, report: Say) -> Index:
        """Give the index of the store, checked at most ``max_age_s`` seconds ago.

        ``report`` gets the progress of reading new records, also where another thread reads them.
        """
        while not self._lock.acquire(timeout=_PROGRESS_S):
            report(*self._progress)
        try:
            if self._index is None or not self._is_current(self._index, max_age_s):
                self._index = open_index(self._results, partial(self._report, report))
                clean()
                self._checked = time.monotonic()
            return self._index
        finally:
            self._lock.release()

    def _report(self, report: Say, done: int, new: int) -> None:
        self._progress = (done, new)
        report(done, new)

    def records(self) -> int:
        """Count the records of the store, as of the last check by any open page."""
        with self._lock:
            if self._index is not None and self._is_current(self._index, _CHECK_S - 1):
                return self._index.counts["records"]
        return len(list_records(self._results))

    def _is_current(self, index: Index, max_age_s: float) -> bool:
        if time.monotonic() - self._checked < max_age_s:
            return True
        current = index.is_current()
        self._checked = time.monotonic() if current else _NEVER
        return current


class _ProgressBar:
    """A progress bar, drawn once there is progress to show."""

    def __init__(self) -> None:
        self._place: DeltaGenerator | None = None

    def show(self, done: int, new: int) -> None:
        """Show how many of the ``new`` records are read."""
        if new >= _MANY:
            self._place = self._place or st.empty()
            self._place.progress(done / new, f"Reading {plural(new, 'new record')}: {done} done")

    def clear(self) -> None:
        """Take it away."""
        if self._place:
            self._place.empty()


@st.cache_resource(show_spinner=False)
def _shared_index(results: Path) -> _SharedIndex:
    return _SharedIndex(results)


@st.cache_resource(max_entries=100, show_spinner="Reading the record")
def _read(path: Path, stamp: object) -> Entry | Broken:
    """Read a record once; ``stamp`` differs when its files have changed."""
    del stamp
    return load_entry(path)


@st.cache_resource(ttl=_CHECK_S, show_spinner=False)
def _checkout() -> Checkout:
    return checkout_here()


def _results() -> Path:
    return results_folder(os.environ.get(RESULTS_VARIABLE, "results"))


def open_early() -> None:
    """Open the index before the first reader comes, who gets its errors."""
    with contextlib.suppress(HybridwatchError, OSError):
        _shared_index(_results()).index(_FRESH_S, lambda _done, _new: None)


def open_source(*, filtered: bool = False) -> ScreenSource:
    """Open the data of the screens; for a filter they may be as old as the page."""
    results = _results()
    bar = _ProgressBar()
    index = _shared_index(results).index(_FILTERED_S if filtered else _FRESH_S, bar.show)
    bar.clear()
    return ScreenSource(
        results=results,
        index=index,
        now=datetime.now(UTC),
        read=lambda path: _read(path, read_stamp(path)),
        checkout=_checkout,
    )


@st.fragment
def show(screen: str) -> None:
    """Draw a page of one screen as a fragment: a filter does not draw the navigation again."""
    with hidden_from_streamlit(), notice_if_unreachable():
        draw_screen(screen)


@contextlib.contextmanager
def notice_if_unreachable() -> Iterator[None]:
    """Show a notice while the database cannot be reached, and keep what was typed."""
    try:
        yield
    except DatabaseError as error:
        lines = tuple(str(error).splitlines())
        draw_more((Notice("The database cannot be reached", lines),), "away")
        # Streamlit forgets the text of a field that is not drawn, unless it is set.
        for key in [key for key in st.session_state if str(key).startswith(_TYPED)]:
            st.session_state[key] = st.session_state[key]


def draw_screen(screen: str) -> ScreenSource:
    """Draw one screen, and return its data for a page that draws more."""
    filtered = is_filtered()
    soon = st.empty()
    if SCREENS[screen].figures and not filtered:
        prepare_charts(soon)
    source = open_source(filtered=filtered)
    pairs = [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]
    news = st.container()
    document = open_view(source, Address(screen, tuple(pairs)))
    st.set_page_config(page_title=_tab_title(document.title, SCREENS[screen].title))
    soon.empty()
    draw(document, source.now)
    if document.likely and not filtered:
        _prepare_views(source, document.likely)
    with news:
        _watch(source.results, source.index.counts["records"])
    return source


def _tab_title(view: str, screen: str) -> str:
    """The title of the browser's tab; runs and histories of one scenario differ in it."""
    names = [name for name in dict.fromkeys((view, screen)) if name != _NAME]
    return visible(" \N{MIDDLE DOT} ".join((*names, _NAME)))


def _prepare_views(source: ScreenSource, likely: Iterable[Address]) -> None:
    """Open the views that are likely next while the reader reads; their slow parts are cached."""
    later = threading.Timer(_DRAWN_S, _open, (source, likely))
    later.daemon = True
    later.start()


def _open(source: ScreenSource, views: Iterable[Address]) -> None:
    for each in views:
        open_view(source, each)


@st.fragment(run_every=_CHECK_S)
def _watch(results: Path, drawn: int) -> None:
    """Show a notice once runs were added since the page was drawn."""
    with hidden_from_streamlit():
        new = _shared_index(results).records() - drawn
    if new > 0:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{plural(new, 'new run')} since you opened this")
            if st.button("Show", type="tertiary"):
                st.rerun()
