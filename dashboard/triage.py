"""The forms by which people answer alerts; the dashboard writes nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import streamlit as st
from draw import draw_more
from elements import markdown_of

from hybridwatch.analysis.alert_decisions import (
    LONGEST_MUTE,
    LONGEST_NAME,
    LONGEST_TEXT,
    LONGEST_URL,
    Decision,
    TriageAction,
    TriageConflict,
    make_decision,
)
from hybridwatch.analysis.alerts import AlertGroup, Status
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.decisions import open_triage
from hybridwatch.errors import TriageError
from hybridwatch.pages.address import Address
from hybridwatch.pages.document import Line, Link, Notice, Section, When
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.screens.alerts import listed, render_address, render_alert_name
from hybridwatch.pages.screens.screen import DONE, alerts_here, entry_line

_NAME: Final = "triage name"
"""Key of the text field. Streamlit forgets it on another page, so its text is saved apart."""
_SAVED_NAME: Final = "triage name kept"
_SHOWN: Final = "triage shown"
_OUTCOME: Final = "triage outcome"
_ROUND: Final = "triage round"
"""Key of the count of saved answers: the forms of the next round are new, and empty."""
LABELS: Final[Mapping[TriageAction, str]] = {
    TriageAction.ACKNOWLEDGE: "Acknowledge",
    TriageAction.ACCEPT: "Expected: accept",
    TriageAction.INVALID: "Invalid",
    TriageAction.DUPLICATE: "Duplicate of",
    TriageAction.NOTE: "Note",
    TriageAction.ASSIGN: "Assign",
    TriageAction.LINK: "Link an issue",
    TriageAction.MUTE: "Mute",
    TriageAction.UNMUTE: "Unmute",
    TriageAction.REOPEN: "Reopen",
}
"""What a reader can do about an alert, in the order shown."""
_TEXTS: Final[Mapping[TriageAction, tuple[str, int]]] = {
    TriageAction.ACKNOWLEDGE: ("Reason", LONGEST_TEXT),
    TriageAction.ACCEPT: ("Why this is the new level", LONGEST_TEXT),
    TriageAction.INVALID: ("What was wrong with the measurement", LONGEST_TEXT),
    TriageAction.DUPLICATE: (
        "Address or key of the other alert, or address of an issue",
        LONGEST_URL,
    ),
    TriageAction.NOTE: ("Note", LONGEST_TEXT),
    TriageAction.ASSIGN: ("To whom (nothing takes it from everybody)", LONGEST_NAME),
    TriageAction.LINK: ("Address of the issue, https://", LONGEST_URL),
    TriageAction.MUTE: ("Reason, if you like", LONGEST_TEXT),
    TriageAction.UNMUTE: ("Reason, if you like", LONGEST_TEXT),
    TriageAction.REOPEN: ("Reason, if you like", LONGEST_TEXT),
}
_LONG: Final = frozenset(
    {TriageAction.ACKNOWLEDGE, TriageAction.ACCEPT, TriageAction.INVALID, TriageAction.NOTE}
)
_WEEK: Final = timedelta(days=7)
_LIST_SHOWN: Final = "triage list shown"
_LIST_OUTCOME: Final = "triage list outcome"
_FEWEST: Final = 2
"""Alerts that make a list; a single one is answered on its page."""


def find_picked(source: ScreenSource) -> AlertGroup | None:
    """Find the alert that the address names, by its own key or a member's.

    Call it before the page is drawn. The page is then at least as new as the state that an answer
    is checked against, so no answer overrules a decision that was never shown.
    """
    wanted = st.query_params.get_all("alert")[-1:]
    try:
        alerts = alerts_here(source) if any(wanted) else ()
    except TriageError:
        return None  # the page says so
    keyed = ((group, member.subject.key) for group in alerts for member in group.members)
    return next((group for group, key in keyed if key in wanted), None)


def draw_forms(alert: AlertGroup, source: ScreenSource) -> None:
    """Draw the forms under an alert, in the state in which it is shown."""
    st.session_state[_SHOWN] = alert
    draw_more((Section("Answer it", ()),), "answer")
    key, outcome = st.session_state.get(_OUTCOME, ("", None))
    with st.container():  # there also when empty: what stands below stays what it is
        if outcome is not None and key == alert.key:
            draw_more((outcome,), "outcome")
    draw_name()
    actions = _find_actions(alert)
    tabs = st.tabs([LABELS[action] for action in actions], key=f"actions {alert.key}")
    for action, tab in zip(actions, tabs, strict=True):
        with tab:
            _form(action, alert, source)


def _find_actions(alert: AlertGroup) -> list[TriageAction]:
    now = datetime.now(UTC)
    muted = any(member.decisions.muted_until(now) is not None for member in alert.members)
    is_open = not alert.status.is_over
    fits = {
        TriageAction.ACKNOWLEDGE: is_open,
        TriageAction.ACCEPT: is_open,
        TriageAction.INVALID: is_open,
        TriageAction.DUPLICATE: is_open,
        TriageAction.UNMUTE: muted,
        TriageAction.REOPEN: alert.status is not Status.OPEN,
    }
    return [action for action in LABELS if fits.get(action, True)]


def draw_name() -> None:
    """Draw the field for the name under which answers are saved, or the name of the login."""
    if login := _login():
        st.text(f"You answer as {login}.")
        return
    st.session_state.setdefault(_NAME, st.session_state.get(_SAVED_NAME, ""))
    st.text_input(
        "Your name",
        key=_NAME,
        max_chars=LONGEST_NAME,
        autocomplete="name",
        help="Kept with everything that you do here",
        on_change=_save_name,
        width=320,
    )


def _save_name() -> None:
    st.session_state[_SAVED_NAME] = st.session_state[_NAME]


def _login() -> str:
    """The name of the user logged in through Streamlit; empty without a login."""
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        return ""
    return str(user.get("name") or user.get("email") or "")


def _form(action: TriageAction, alert: AlertGroup, source: ScreenSource) -> None:
    place = f"{action.value} {alert.key} {round_of_forms()}"
    with st.form(f"form {place}", border=False):
        draw_fields(action, place)
        st.form_submit_button(LABELS[action], on_click=_decide, args=(action, place, source))


def draw_fields(action: TriageAction, place: str) -> None:
    """Draw the fields of a decision; ``read_decision`` reads them by ``place``, a name for them."""
    label, longest = _TEXTS[action]
    if action is TriageAction.MUTE:
        today = datetime.now(UTC).date()
        st.date_input(
            "Until 00:00 UTC of",
            value=today + _WEEK,
            min_value=today + timedelta(days=1),
            max_value=today + LONGEST_MUTE - timedelta(days=1),
            key=f"until {place}",
            width=320,
        )
    if action in _LONG:
        st.text_area(label, key=f"text {place}", max_chars=longest)
    else:
        st.text_input(label, key=f"text {place}", max_chars=longest)


def round_of_forms() -> int:
    """Count the saved answers: the forms of each round are new, and empty."""
    return int(st.session_state.get(_ROUND, 0))


def next_round() -> None:
    """Empty every form."""
    st.session_state[_ROUND] = round_of_forms() + 1


def find_author() -> str:
    """The name under which answers are saved: that of the login, else the text field's."""
    return _login() or st.session_state.get(_NAME, "")


def _decide(action: TriageAction, place: str, source: ScreenSource) -> None:
    """Save the reader's answer to the alert, in the state shown before the click."""
    alert: AlertGroup = st.session_state[_SHOWN]
    now = datetime.now(UTC)
    who = find_author()
    try:
        decision = read_decision(action, place, now)
        with open_triage(source.results) as triage:
            for error in triage.decide_all(alert.current, decision, who, now).values():
                raise error  # the first member's stands for all
    except TriageConflict as conflict:
        outcome = _render_conflict(conflict)
    except TriageError as error:
        outcome = Notice("Nothing was kept", tuple(str(error).splitlines()))
    else:
        outcome = Notice(f"Kept: {who} {DONE[action]}{_render_original(decision)}.", quiet=True)
        next_round()
    st.session_state[_OUTCOME] = (alert.key, outcome)


def _render_original(decision: Decision) -> str:
    return f" {decision.text}" if decision.action is TriageAction.DUPLICATE else ""


def read_decision(action: TriageAction, place: str, now: datetime) -> Decision:
    """Read a decision from the fields.

    Raises:
        TriageError: A field is missing, too long or not allowed.
    """
    until = None
    if action is TriageAction.MUTE and (day := st.session_state[f"until {place}"]) is not None:
        until = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return make_decision(action, st.session_state[f"text {place}"], until, now)


def _render_conflict(conflict: TriageConflict) -> Notice:
    """Show what the other person did, and ask to send again."""
    entries = ((entry_line(entry), ", ", When(entry.at)) for entry in conflict.meanwhile)
    retry = "It is part of what you see now. What you wrote is still in the form: send it again?"
    return Notice("Nothing was kept: somebody was faster", (*entries, retry))


def find_listed(source: ScreenSource) -> tuple[AlertGroup, ...]:
    """Find the alerts that the page lists; none on the page of a single alert.

    Call it before the page is drawn, as ``find_picked``.
    """
    names = dict.fromkeys(st.query_params)
    pairs = [(name, value) for name in names for value in st.query_params.get_all(name)]
    try:
        return listed(source, Address("alerts", tuple(pairs)))
    except TriageError:
        return ()  # the page says so


def draw_list_form(alerts: Sequence[AlertGroup], source: ScreenSource) -> None:
    """Draw the form under a list of alerts, in the state in which they are shown."""
    with st.container():  # there also when empty: what stands below stays what it is
        if (outcome := st.session_state.pop(_LIST_OUTCOME, None)) is not None:
            draw_more((outcome,), "list outcome")
    if len(alerts) < _FEWEST:
        return
    st.session_state[_LIST_SHOWN] = alerts
    draw_more((Section("Answer several at once", ()),), "answer many")
    draw_name()
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
                # Streamlit reads a label as Markdown; a record's text must stay plain.
                st.checkbox(markdown_of(render_alert_name(alert)), key=f"{alert.key} {place}")
        draw_fields(action, place)
        st.form_submit_button("Answer", on_click=_decide_many, args=(action, place, source))


def _decide_many(action: TriageAction, place: str, source: ScreenSource) -> None:
    """Save one answer to every ticked alert, in the state shown before the click."""
    shown: Sequence[AlertGroup] = st.session_state[_LIST_SHOWN]
    state, now, who = st.session_state, datetime.now(UTC), find_author()
    ticked = [a for a in shown if state[f"all {place}"] or state[f"{a.key} {place}"]]
    if not ticked:
        state[_LIST_OUTCOME] = Notice("Nothing was kept", ("Tick at least one alert.",))
        return
    try:
        decision = read_decision(action, place, now)
        with open_triage(source.results) as triage:
            members = [member for alert in ticked for member in alert.current]
            failed = triage.decide_all(members, decision, who, now)
    except TriageError as error:
        outcome = Notice("Nothing was kept", tuple(str(error).splitlines()))
    else:
        failures = tuple(_render_failures(ticked, failed))
        saved = f"{who} {DONE[action]}: {plural(len(ticked) - len(failures), 'alert')}"
        title = f"Kept: {saved}; not kept: {len(failures)}" if failures else f"Kept: {saved}."
        outcome = Notice(title, failures, quiet=not failed)
        next_round()
    state[_LIST_OUTCOME] = outcome


def _render_failures(
    alerts: Sequence[AlertGroup], failed: Mapping[str, TriageError]
) -> Iterator[Line]:
    """A line for each alert whose answer was not saved: a link to it, and why."""
    here = Address("alerts", ())
    for alert in alerts:
        errors = [failed[k] for member in alert.members if (k := member.subject.key) in failed]
        if not errors:
            continue
        error, link = errors[0], Link(render_alert_name(alert), render_address(alert.key, here))
        if isinstance(error, TriageConflict) and error.meanwhile:
            last = error.meanwhile[-1]
            yield (link, ": somebody was faster: ", entry_line(last), ", ", When(last.at))
        else:
            yield (link, f": {error}")
