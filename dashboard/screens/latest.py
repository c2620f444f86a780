"""The first page: what stands where, why, and how it came about.

Text from a record goes through ``st.text``, ``st.code``, a select box or ``views.markup``, which
escapes; never through Markdown.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from hybridwatch.analysis.verdict import Flip, Report
from hybridwatch.store import Broken
from hybridwatch.views import markup
from hybridwatch.views.board import Board, board_of, counted, entry_of, listed, summary_of
from hybridwatch.views.figures import figure_history
from hybridwatch.views.history import (
    Entry,
    answer_title,
    flips_of,
    latest_standings,
    named,
    notes_of,
    repeat_command_of,
    verdict_of,
)
from hybridwatch.views.sentence import headline, reason
from hybridwatch.views.series import label_of, series_of

ALL = "all"
FLIPS_OPEN = 3
FLIPS_SHOWN = 20


@st.cache_data(max_entries=1000, show_spinner="Reading the records")
def read(path: str, stamps: object) -> Entry | Broken:
    """Read a record once; ``stamps`` differ when its files have changed."""
    del stamps
    return entry_of(Path(path))


def main() -> None:
    """Draw the page from top to bottom."""
    results = Path(os.environ.get("HYBRIDWATCH_RESULTS", "results"))
    board = board_of(read(each.path, each.stamps) for each in listed(results))
    now = datetime.now(UTC)
    st.title("hybridwatch", anchor=False)
    st.text(f"{summary_of(board, now)} · {results / 'records'}")
    show_broken(board)
    if not board.entries:
        show_empty(board)
        return
    verdicts, choices = st.container(), st.columns([2, 4, 2])
    entry, metric = choose(board, choices)
    with verdicts:
        show_standings(board, entry, now)
    show_entry(entry)
    if entry.report:
        show_flips(entry.report)
    show_history(board, entry, metric)


def show_broken(board: Board) -> None:
    """Name what could not be read, above everything else."""
    if not board.broken:
        return
    with st.container(border=True):
        st.markdown(f":orange[**!**] **{counted(len(board.broken), 'record')} could not be read**")
        for broken in board.broken:
            st.text(f"{broken.path.name}\n{broken.reason}")


def show_empty(board: Board) -> None:
    """Say what to do when there is nothing to show."""
    with st.container(border=True):
        state = "No run can be read." if board.broken else "No runs yet."
        st.markdown(f"**{state}** Measure the smoke scenarios first; it takes a few minutes:")
        st.code("make run", language=None)


def choose(board: Board, columns: list[st.delta_generator.DeltaGenerator]) -> tuple[Entry, str]:
    """Let the reader pick scenario, run and metric; the address of the page follows."""
    standings = latest_standings(board.entries)
    first = standings[0].entry if standings else board.entries[-1]
    scenarios = {entry.run.scenario.id: entry.run.scenario.id for entry in board.entries}
    with columns[0]:
        scenario = pick("Scenario", "scenario", scenarios, first.run.scenario.id)
    runs = {entry.run.id: entry for entry in board.of_scenario(scenario)}
    worst = next((s.entry.run.id for s in standings if s.entry.run.id in runs), next(iter(runs)))
    with columns[1]:
        labels = {run_id: named(entry) for run_id, entry in runs.items()}
        entry = runs[pick("Run", "run", labels, worst)]
    series = series_of(board.beside(entry))
    metrics = {label_of(each.metric, each.statistic) for each in series}
    with columns[2]:
        options = {ALL: "every metric", **{name: name for name in sorted(metrics)}}
        metric = pick("Metric", "metric", options, ALL)
    return entry, metric


def pick(label: str, key: str, options: Mapping[str, str], default: str) -> str:
    """Show a select box whose state is part of the address, both ways."""
    linked, followed = st.query_params.get(key), f"{key} as linked"
    if linked is not None and linked != st.session_state.get(followed):
        if linked in options:
            st.session_state[key] = linked
        else:
            st.text(f"The link asks for {linked!r}, which is not in this store.")
    if st.session_state.get(key) not in options:
        st.session_state[key] = default
    picked: str = st.selectbox(label, list(options), format_func=options.__getitem__, key=key)
    st.query_params[key] = picked
    st.session_state[followed] = picked
    return picked


def show_standings(board: Board, chosen: Entry, now: datetime) -> None:
    """Show the newest verdict of every comparison, bad news first."""
    st.subheader("Latest verdicts", anchor=False)
    standings = latest_standings(board.entries)
    if standings:
        st.html(markup.standings_table(standings, now, chosen.run.id))
    else:
        st.text("No run has two sides to compare yet.")


def show_entry(entry: Entry) -> None:
    """Show one run: every verdict, what differs, what to doubt, how to repeat it."""
    report = entry.report
    st.subheader("This run", anchor=False)
    if report is None:
        st.text(f"No verdicts: {entry.trouble}")
    else:
        st.html(markup.headline(verdict_of(report), headline(report)))
        if report.attribution is not None:
            st.text(reason(report.attribution))
        st.html(markup.comparisons_table(report))
        show_notes(report)
    repeat, record = st.columns(2)
    with repeat:
        st.caption("Repeat it")
        st.code(repeat_command_of(entry), language=None, wrap_lines=True)
    with record:
        st.caption("Everything measured is in")
        st.code(entry.path.name, language=None, wrap_lines=True)


def show_notes(report: Report) -> None:
    """Show what a reader should know before believing the table."""
    for title, lines in notes_of(report):
        with st.container(gap="xxsmall"):
            st.caption(title)
            st.text("\n".join(lines))


def show_history(board: Board, entry: Entry, metric: str) -> None:
    """Show every trial of the scenario's metrics over time."""
    st.subheader("History", anchor=False)
    scenario = entry.run.scenario
    st.text(
        f"{scenario.id}, version {scenario.version}, on {entry.run.testbed.id}: "
        "a point is a trial, a bar the median of a run's side"
    )
    everything = series_of(board.beside(entry))
    chosen = [s for s in everything if metric in {ALL, label_of(s.metric, s.statistic)}]
    columns = st.columns(2) if len(chosen) > 1 else [st.container()]
    for place, series in enumerate(chosen):
        with columns[place % len(columns)], st.container(border=True):
            st.plotly_chart(figure_history(series), key=f"history {place}")


def show_flips(report: Report) -> None:
    """Show answers that changed, side by side."""
    changed = list(flips_of(report))
    if changed:
        st.subheader("Answers that changed", anchor=False)
    for metric, flips in changed:
        shown = min(len(flips), FLIPS_SHOWN)
        st.text(f"{metric.id}: {len(flips)} documents, lost ones first; the first {shown} are here")
        for flip in flips[:FLIPS_OPEN]:
            show_flip(flip)
        if shown > FLIPS_OPEN:
            with st.expander(f"{shown - FLIPS_OPEN} more"):
                for flip in flips[FLIPS_OPEN:FLIPS_SHOWN]:
                    show_flip(flip)


def show_flip(flip: Flip) -> None:
    """Show one document with both answers."""
    with st.container(border=True):
        columns = st.columns([3, 2, 2, 2])
        texts = (
            ("prompt", flip.baseline.prompt),
            ("expected", flip.baseline.target),
            (answer_title("baseline", flip.baseline), flip.baseline.response),
            (answer_title("contender", flip.contender), flip.contender.response),
        )
        for column, (title, text) in zip(columns, texts, strict=True):
            with column:
                st.caption(title)
                st.code(text, language=None, wrap_lines=True)


main()
