"""One answer for several alerts: what somebody says who has understood a whole list."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import streamlit as st
from draw import draw_more
from elements import markdown_of
from triage import LABELS, act_of, ask, ask_name, next_round, round_of_forms, who_answers

from hybridwatch.analysis.alert_decisions import TriageAction, TriageConflict
from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.database.decisions import open_triage
from hybridwatch.errors import TriageError
from hybridwatch.pages.address import Address
from hybridwatch.pages.alert_words import DONE, entry_line
from hybridwatch.pages.document import FieldKind, Line, Link, Notice, Section, When
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.screens.alerts import listed, render_address, render_alert_name

_SHOWN: Final = "triage list shown"
_OUTCOME: Final = "triage list outcome"
_FEWEST: Final = 2
"""Alerts that make a list; a single one is answered on its page."""


def listed_here(source: ScreenSource) -> tuple[AlertGroup, ...]:
    """Give the alerts that the page lists; none on the page of one.

    To be asked before the page is drawn, as ``triage.picked``.
    """
    names = dict.fromkeys(st.query_params)
    pairs = [(name, value) for name in names for value in st.query_params.get_all(name)]
    try:
        return listed(source, Address("alerts", tuple(pairs)))
    except TriageError:
        return ()  # the page says so


def offer_many(alerts: Sequence[AlertGroup], source: ScreenSource) -> None:
    """Draw the form under a list of alerts, which are as they were shown."""
    with st.container():  # there also when empty: what stands below stays what it is
        if (outcome := st.session_state.pop(_OUTCOME, None)) is not None:
            draw_more((outcome,), "list outcome")
    if len(alerts) < _FEWEST:
        return
    st.session_state[_SHOWN] = alerts
    draw_more((Section("Answer several at once", ()),), "answer many")
    ask_name()
    action = st.selectbox(
        "What you do",
        [action for action in LABELS if action is not TriageAction.UNMUTE],
        format_func=LABELS.__getitem__,
        key="triage list action",
        width=320,
    )
    place = f"{action.value} list {round_of_forms()}"
    with st.form(f"form {place}", border=False):
        everything = f"All {len(alerts)} shown"
        st.checkbox(everything, key=f"all {place}")
        with st.expander("Or some of them"):
            for alert in alerts:
                # A label is read as Markdown: what a record says must not be.
                st.checkbox(markdown_of(render_alert_name(alert)), key=f"{alert.key} {place}")
        ask(action, place)
        st.form_submit_button("Answer", on_click=_decide, args=(action, place, source))


def _decide(action: TriageAction, place: str, source: ScreenSource) -> None:
    """Keep one answer to every alert that is ticked, as it was shown before the click."""
    shown: Sequence[AlertGroup] = st.session_state[_SHOWN]
    state, now, who = st.session_state, datetime.now(UTC), who_answers()
    ticked = [a for a in shown if state[f"all {place}"] or state[f"{a.key} {place}"]]
    if not ticked:
        state[_OUTCOME] = Notice(FieldKind.LOUD, "Nothing was kept", ("Tick at least one alert.",))
        return
    try:
        act = act_of(action, place, now)
        with open_triage(source.results, source.triage) as triage:
            members = [one for alert in ticked for one in alert.current]
            failed = triage.decide_all(members, act, who, now)
    except TriageError as error:
        outcome = Notice(FieldKind.LOUD, "Nothing was kept", tuple(str(error).splitlines()))
    else:
        lost = tuple(_lost(ticked, failed))
        kept = f"{who} {DONE[action]}: {plural(len(ticked) - len(lost), 'alert')}"
        title = f"Kept: {kept}; not kept: {len(lost)}" if lost else f"Kept: {kept}."
        outcome = Notice(FieldKind.LOUD if failed else FieldKind.QUIET, title, lost)
        next_round()
    state[_OUTCOME] = outcome


def _lost(alerts: Sequence[AlertGroup], failed: Mapping[str, TriageError]) -> Iterator[Line]:
    """Say of each alert why its answer was not kept, with the way to it."""
    here = Address("alerts", ())
    for alert in alerts:
        errors = [failed[k] for one in alert.members if (k := one.subject.key) in failed]
        if not errors:
            continue
        error, way = errors[0], Link(render_alert_name(alert), render_address(alert.key, here))
        if isinstance(error, TriageConflict) and error.meanwhile:
            last = error.meanwhile[-1]
            yield (way, ": somebody was faster: ", entry_line(last), ", ", When(last.at))
        else:
            yield (way, f": {error}")
