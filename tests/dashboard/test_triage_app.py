"""The forms under an alert: what people do is kept, once, and nothing is overruled unseen."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from hybridwatch.analysis.alert_decisions import DecisionEntry, TriageAction
from hybridwatch.analysis.alerts import Alert, Status
from hybridwatch.database.connection import DATABASE_FILE, Database
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import open_index
from hybridwatch.errors import DatabaseError, TriageError
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.screens.screen import alerts_here
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, SCENARIO, STARTED, a_run
from tests.dashboard.live import html_of, page_of, said_by
from tests.unit.analysis.alerts.builders import acknowledge

HOSTILE = "<script>window.pwned = 1</script> [link](javascript:boom()) **bold** :smile: $x$"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A store with one alert."""
    write_run(tmp_path, broken_run())
    return tmp_path


def broken_run(scenario: str = SCENARIO.id, **changes: Any) -> Run:
    """A run whose contender breaks a contract."""
    contract = "contract.padded_rows_prefilling"
    return a_run(
        {contract: (0.0, 0.0)},
        {contract: (3.0, 3.0)},
        builds=(BASELINE, BASELINE),
        scenario=replace(SCENARIO, id=scenario),
        **changes,
    )


@pytest.fixture
def open_alert(
    results: Path, monkeypatch: pytest.MonkeyPatch, nothing_later: None
) -> Callable[[], AppTest]:
    """Opens the page of the alert, as one of several people."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(results))

    def opened() -> AppTest:
        page = page_of("alerts")
        page.query_params["alert"] = alert_in(results).subject.key
        return run_again(page)

    return opened


def run_again(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def alerts_in(results: Path) -> tuple[Alert, ...]:
    groups = alerts_here(ScreenSource(results, open_index(results), datetime.now(UTC)))
    return tuple(one for group in groups for one in group.members)


def alert_in(results: Path) -> Alert:
    (alert,) = alerts_in(results)
    return alert


def entries(results: Path) -> tuple[DecisionEntry, ...]:
    return alert_in(results).decisions.entries


def box(page: AppTest, action: TriageAction, kind: str = "text") -> Any:
    """The field of a form."""
    fields: list[Any] = [*page.text_input, *page.text_area, *page.date_input]
    (found,) = (field for field in fields if str(field.key).startswith(f"{kind} {action.value} "))
    return found


def buttons(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def do(
    page: AppTest, action: TriageAction, label: str, text: str, name: str | None = "Ada"
) -> AppTest:
    """Fill in a form and send it."""
    if name is not None:
        page.text_input(key="triage name").set_value(name)
    box(page, action).set_value(text)
    (button,) = (each for each in page.button if each.label == label)
    button.click()
    return run_again(page)


@pytest.fixture
def open_list(
    results: Path, monkeypatch: pytest.MonkeyPatch, nothing_later: None
) -> Callable[[], AppTest]:
    """Opens the list of alerts, as one of several people."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(results))

    def opened() -> AppTest:
        return run_again(page_of("alerts"))

    return opened


@pytest.fixture
def three(results: Path) -> list[Alert]:
    """Two more alerts in the store; gives all three as they are listed."""
    for number, scenario in enumerate(("smoke/second", HOSTILE)):
        earlier = STARTED - timedelta(days=number + 1)  # of one night they would be one alert
        run = broken_run(id=f"{number:08x}", scenario=scenario, started_at=earlier)
        write_run(results, run)
    return list(alerts_in(results))


def tick(page: AppTest, *labels: str) -> None:
    for label in labels:
        (box,) = (each for each in page.checkbox if label in each.label)
        box.set_value(True)


def send(page: AppTest, text: str, name: str = "Ada") -> AppTest:
    """Answer several alerts with the form below their list."""
    page.text_input(key="triage name").set_value(name)
    (field,) = page.text_area
    field.set_value(text)
    (button,) = (each for each in page.button if each.label == "Answer")
    button.click()
    return run_again(page)


def test_a_list_of_one_has_no_forms(open_list: Callable[[], AppTest]) -> None:
    page = open_list()
    assert buttons(page) == []
    assert "Answer it" not in said_by(page)


def test_one_answer_for_all_that_are_shown(results, three, open_list) -> None:
    page = open_list()
    tick(page, "All 3 shown")
    page = send(page, "the new scheduler")
    assert "Kept: Ada acknowledged: 3 alerts." in said_by(page)
    answers = {alert.decisions.answer for alert in alerts_in(results)}
    acts = {entry.decision for entry in answers if entry}
    assert acts == {acknowledge("the new scheduler")}
    assert len(answers) == len(three)


def test_one_answer_for_those_with_a_tick(results, three, open_list) -> None:
    page = open_list()
    page.selectbox(key="triage list action").set_value(TriageAction.ACCEPT)
    page = run_again(page)
    tick(page, "smoke/second")
    send(page, "expected since the upgrade")
    closed = [a.subject.scenario for a in alerts_in(results) if a.status is Status.CLOSED]
    assert closed == ["smoke/second"]


def test_who_was_slower_with_one_of_many_is_reported_and_keeps_the_others(
    results: Path, three: list[Alert], open_list: Callable[[], AppTest]
) -> None:
    page = open_list()
    second = next(alert for alert in three if alert.subject.scenario == "smoke/second")
    with open_triage(results) as triage:
        triage.decide(second, acknowledge("mine"), "Ben", datetime.now(UTC))
    tick(page, "All 3 shown")
    said = said_by(send(page, "all known"))
    assert "Kept: Ada acknowledged: 2 alerts; not kept: 1" in said
    assert "Ben acknowledged: mine" in said
    whose = {a.decisions.answer.who for a in alerts_in(results) if a.decisions.answer}
    assert whose == {"Ada", "Ben"}


def test_nothing_ticked_is_reported(results, three, open_list) -> None:
    said = said_by(send(open_list(), "all known"))
    assert "Tick at least one alert." in said
    assert not list(results.glob("triage*"))


def test_a_hostile_scenario_is_no_markup_in_a_tick_box(three, open_list) -> None:
    (label,) = (each.label for each in open_list().checkbox if "window" in each.label)
    assert "\\<script\\>" in label
    assert "\\*\\*bold" in label


def test_looking_writes_nothing(results: Path, open_alert: Callable[[], AppTest]) -> None:
    open_alert()
    assert not list(results.glob("triage*"))


def test_an_acknowledgement_is_kept_told_and_shown(results, open_alert) -> None:
    page = do(open_alert(), TriageAction.ACKNOWLEDGE, "Acknowledge", "known since Monday")
    (entry,) = entries(results)
    assert (entry.who, entry.decision) == ("Ada", acknowledge("known since Monday"))
    assert alert_in(results).status is Status.ACKNOWLEDGED
    said = said_by(page)
    assert "Kept: Ada acknowledged." in said
    assert "Ada acknowledged: known since Monday" in said
    assert box(page, TriageAction.ACKNOWLEDGE).value == ""
    assert page.text_input(key="triage name").value == "Ada"


@pytest.mark.parametrize(
    ("action", "label", "text", "told"),
    [
        (TriageAction.NOTE, "Note", "look at the clock", "Ada noted: look at the clock"),
        (TriageAction.ASSIGN, "Assign", "Ben", "Ada assigned Ben"),
        (TriageAction.LINK, "Link an issue", "https://example.org/1", "https://example.org/1"),
        (TriageAction.MUTE, "Mute", "moving house", ": moving house"),
        (
            TriageAction.ACCEPT,
            "Expected: accept",
            "new level",
            "Ada accepted as expected: new level",
        ),
        (TriageAction.INVALID, "Invalid", "a noisy guest", "Ada called it invalid: a noisy guest"),
        (TriageAction.DUPLICATE, "Duplicate of", "0" * 32, "Ada called it a duplicate of"),
    ],
)
def test_every_act_is_kept(results, open_alert, action, label, text, told) -> None:
    page = do(open_alert(), action, label, text)
    (entry,) = entries(results)
    assert (entry.decision.action, entry.decision.text) == (action, text)
    assert told in said_by(page)


def test_a_mute_ends_with_the_day_that_was_chosen_and_can_be_taken_back(results, open_alert):
    page = open_alert()
    assert "Unmute" not in buttons(page)
    day = datetime.now(UTC).date() + timedelta(days=20)
    box(page, TriageAction.MUTE, "until").set_value(day)
    page = do(page, TriageAction.MUTE, "Mute", "")
    assert entries(results)[0].decision.until == datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert alert_in(results).status is Status.MUTED
    do(page, TriageAction.UNMUTE, "Unmute", "")
    assert alert_in(results).status is Status.OPEN


def test_what_was_acknowledged_can_be_reopened(results, open_alert) -> None:
    page = open_alert()
    assert "Reopen" not in buttons(page)
    page = do(page, TriageAction.ACKNOWLEDGE, "Acknowledge", "known")
    do(page, TriageAction.REOPEN, "Reopen", "")
    assert alert_in(results).status is Status.OPEN


@pytest.mark.parametrize(
    ("action", "label", "text", "name", "told"),
    [
        (TriageAction.ACKNOWLEDGE, "Acknowledge", "", "Ada", "reason: expected some words"),
        (TriageAction.ACKNOWLEDGE, "Acknowledge", "known", "", "who: expected some words"),
        (
            TriageAction.LINK,
            "Link an issue",
            "javascript:boom()",
            "Ada",
            "issue: expected an address",
        ),
    ],
)
def test_what_may_not_be_said_is_reported_and_stays_in_the_form(
    results: Path,
    open_alert: Callable[[], AppTest],
    action: TriageAction,
    label: str,
    text: str,
    name: str,
    told: str,
) -> None:
    page = do(open_alert(), action, label, text, name)
    assert "Nothing was kept" in said_by(page)
    assert told in said_by(page)
    assert box(page, action).value == text
    assert entries(results) == ()


def test_the_slower_of_two_learns_what_the_other_did_and_asked_again(results, open_alert) -> None:
    ada, ben = open_alert(), open_alert()
    do(ada, TriageAction.ACKNOWLEDGE, "Acknowledge", "mine")
    ben = do(ben, TriageAction.ACKNOWLEDGE, "Acknowledge", "no, mine", "Ben")
    said = said_by(ben)
    assert "Nothing was kept: somebody was faster" in said
    assert "Ada acknowledged: mine" in said
    assert [entry.who for entry in entries(results)] == ["Ada"]
    assert box(ben, TriageAction.ACKNOWLEDGE).value == "no, mine"
    (again,) = (button for button in ben.button if button.label == "Acknowledge")
    again.click()
    run_again(ben)
    assert [entry.who for entry in entries(results)] == ["Ada", "Ben"]


def test_a_page_that_was_drawn_again_has_seen_what_it_shows(results, open_alert) -> None:
    ada, ben = open_alert(), open_alert()
    do(ada, TriageAction.NOTE, "Note", "first")
    run_again(ben)
    assert "Ada noted: first" in said_by(ben)
    do(ben, TriageAction.NOTE, "Note", "second", "Ben")
    assert [entry.who for entry in entries(results)] == ["Ada", "Ben"]


def test_hostile_words_are_never_read_as_markup(results, open_alert) -> None:
    page = do(open_alert(), TriageAction.NOTE, "Note", HOSTILE, HOSTILE)
    assert entries(results)[0].decision.text == HOSTILE
    assert f"Kept: {HOSTILE} noted." in said_by(page)
    assert "&lt;script&gt;" in html_of(page)
    assert "<script>" not in html_of(page)
    assert not [each.value for each in (*page.markdown, *page.caption) if "bold" in each.value]


def test_a_login_is_the_name(results, open_alert, monkeypatch) -> None:
    monkeypatch.setattr("triage._login", lambda: "Grace")
    page = open_alert()
    assert "You answer as Grace." in said_by(page)
    do(page, TriageAction.NOTE, "Note", "signed", name=None)
    assert entries(results)[0].who == "Grace"


def test_a_database_that_cannot_be_read_is_reported_without_a_form(results, open_alert) -> None:
    with open_triage(results) as triage:
        triage.decide(alert_in(results), acknowledge("x"), "Ada", datetime.now(UTC))
    page = open_alert()
    (results / DATABASE_FILE).write_bytes(b"no database" * 100)
    run_again(page)
    assert "This view cannot be shown" in said_by(page)
    assert buttons(page) == []


def test_what_is_sent_while_the_database_is_away_is_still_in_the_form_afterwards(
    results: Path, open_alert: Callable[[], AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_alert()
    with monkeypatch.context() as away:
        away.setattr(Database, "reading", Mock(side_effect=DatabaseError("db.example: refused")))
        away.setattr(Database, "writing", Mock(side_effect=TriageError("db.example: refused")))
        do(page, TriageAction.NOTE, "Note", "half a thought")
        assert "The database cannot be reached" in said_by(page)
        assert "db.example: refused" in said_by(page)
        assert buttons(page) == []
    run_again(page)
    assert box(page, TriageAction.NOTE).value == "half a thought"
    assert page.text_input(key="triage name").value == "Ada"
    assert entries(results) == ()


def test_an_answer_on_the_page_of_one_member_is_kept_with_all(results, open_alert) -> None:
    write_run(results, broken_run(id="0000beef", scenario="smoke/second"))
    (group,) = alerts_here(ScreenSource(results, open_index(results), datetime.now(UTC)))
    page = page_of("alerts")
    page.query_params["alert"] = group.members[1].subject.key
    do(run_again(page), TriageAction.ACKNOWLEDGE, "Acknowledge", "known")
    assert [one.status for one in alerts_in(results)] == [Status.ACKNOWLEDGED] * 2
