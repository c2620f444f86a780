"""What every page does: read the address, ask the library for the document, draw it."""

import gc
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import streamlit as st
from draw import draw, follow_click

from hybridwatch.cli.checkout import checkout_here
from hybridwatch.index import Index, open_index
from hybridwatch.store import Broken, list_records
from hybridwatch.views.address import Address
from hybridwatch.views.board import entry_of, stamps_of
from hybridwatch.views.checkout import Checkout
from hybridwatch.views.history import Entry
from hybridwatch.views.screens import Source, open_view
from hybridwatch.views.sentence import headline, plural

_LOOK_S: Final = 10
"""Seconds between two looks at whether the store has grown."""
_FRESH_S: Final = 2
"""Seconds for which a look at a large store, which takes some fifty milliseconds, serves all."""
_MANY: Final = 20
"""New records from which on reading them is worth a bar."""


class _Shelf:
    """The one index that all readers of this server share."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._looked = -float(_FRESH_S)

    def index(self) -> Index:
        """Give the index as of now, or of a moment ago."""
        with self._lock:
            if self._index is None or not (self._is_fresh() or self._index.is_current()):
                place = st.empty()
                self._index = open_index(self._results, headline, lambda *n: _say(place, *n))
                place.empty()
                _spare()
            if not self._is_fresh():
                self._looked = time.monotonic()
            return self._index

    def records(self) -> int:
        """Count the records of the store as of now, or of a moment ago."""
        index = self._index
        if index is not None and self._is_fresh():
            return index.counts["records"]
        return len(list_records(self._results))

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._looked < _FRESH_S


def _spare() -> None:
    """Keep the index out of the collections that Streamlit makes after every run of a page."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _say(place: st.delta_generator.DeltaGenerator, done: int, new: int) -> None:
    if new >= _MANY:
        place.progress(done / new, f"Reading {plural(new, 'new record')}: {done} done")


@st.cache_resource(show_spinner=False)
def _shelf(results: Path) -> _Shelf:
    return _Shelf(results)


@st.cache_resource(max_entries=100, show_spinner="Reading the record")
def _read(path: Path, stamps: object) -> Entry | Broken:
    """Read a record once; ``stamps`` differ when its files have changed."""
    del stamps
    return entry_of(path)


@st.cache_resource(ttl=_LOOK_S, show_spinner=False)
def _checkout() -> Checkout:
    return checkout_here()


def source_here() -> Source:
    """Give what the screens look at, as of now."""
    results = Path(os.environ.get("HYBRIDWATCH_RESULTS", "results"))
    return Source(
        results=results,
        index=_shelf(results).index(),
        now=datetime.now(UTC),
        triage=os.environ.get("HYBRIDWATCH_TRIAGE", ""),
        read=lambda path: _read(path, stamps_of(path)),
        checkout=_checkout,
    )


def show(screen: str) -> Source:
    """Draw one screen.

    Args:
        screen: Its name.

    Returns:
        What it looked at, for a page that does more.
    """
    follow_click()
    source = source_here()
    pairs = [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]
    news = st.container()
    draw(open_view(source, Address(screen, tuple(pairs))), source.now)
    with news:
        _watch(source.results, source.index.counts["records"])
    return source


@st.fragment(run_every=_LOOK_S)
def _watch(results: Path, known: int) -> None:
    """Say when runs were added since the page was drawn."""
    new = _shelf(results).records() - known
    if new > 0:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{plural(new, 'new run')} since you opened this")
            if st.button("Show", type="tertiary"):
                st.rerun()
