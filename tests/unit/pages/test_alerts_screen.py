"""Alerts as a screen tells them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.alert_timeline import CONTROL
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.connection import DATABASE_FILE
from hybridwatch.history.checkout import Checkout
from hybridwatch.pages.document import Link, Paragraph, plain
from hybridwatch.pages.screens.alerts import listed
from hybridwatch.records.identity import FixState
from tests.builders import a_build
from tests.dashboard.parity import words_of
from tests.unit.analysis.alerts.builders import acknowledge, assign, link, mute, note
from tests.unit.pages.suite_stores import (
    EQUAL,
    KNOWN_BAD,
    NOW,
    UPGRADE,
    WRONG,
    act,
    alerts,
    all_blocks,
    notices,
    put,
    rows,
    source_of,
    view,
)


def said(document) -> str:
    return "\n".join(words_of(document))


def test_an_empty_store_says_what_to_do_and_keeps_no_database(tmp_path: Path) -> None:
    document = view(tmp_path, "alerts")
    assert "No runs yet" in said(document)
    assert "make run" in said(document)
    assert not list(tmp_path.glob("triage*"))


def test_no_bad_news_is_said_calmly(tmp_path: Path) -> None:
    put(tmp_path, 1, builds=EQUAL)
    document = view(tmp_path, "alerts")
    assert "Nothing is open in 1 run." in said(document)
    assert "No alert is of this status, scenario and person." in said(document)
    (notice,) = notices(document)
    assert notice.title == "1 expected measurement missing"


def test_worst_comes_first_with_its_change_its_run_and_its_builds(tmp_path: Path) -> None:
    put(tmp_path, 2, slower=1.5, builds=UPGRADE)
    put(tmp_path, 9, broken=7.0, answers=WRONG, builds=UPGRADE, scenario="smoke/other")
    put(tmp_path, 10, builds=KNOWN_BAD)
    document = view(tmp_path, "alerts")
    listed = rows(document, "Alerts")
    assert [row[0] for row in listed] == [*["regression"] * 3, "failed"]
    assert [row[1] for row in listed] == [
        "smoke/other|Answers were lost: accuracy.recall -100.0 points",
        "smoke/other|A contract broke: contract.padded_rows_prefilling +7",
        "smoke/padded-graph-rows|Slower: ttft +54.1 %",
        f"smoke/padded-graph-rows|{CONTROL.capitalize()} not caught",
    ]
    assert [row[2] for row in listed] == ["-100.0 points", "+7", "+54.1 %", "-"]
    assert listed[2][3] == "nightly|against\N{NO-BREAK SPACE}cpu-0.27.1, epyc-4c"
    assert listed[2][4] == "2026-03-03, 28 d ago|run\N{NO-BREAK SPACE}00000002 of 0.28.0"
    assert listed[2][5] == "open|blocks"
    assert len(listed[2]) == 6, "a column of who did what, and nobody did anything"
    assert "4 open, 4 of them would block" in said(document)


def test_the_policy_says_what_is_reported(tmp_path: Path) -> None:
    put(tmp_path, 2, slower=1.5, builds=UPGRADE)
    watch = Checkout(policy=Policy((Rule("ttft", action=Action.WATCH),)))
    warn = Checkout(policy=Policy((Rule("ttft", action=Action.WARN),)))
    assert len(alerts(tmp_path)) == 1
    assert alerts(tmp_path, watch) == ()
    assert {row[5] for row in rows(view(tmp_path, "alerts", warn), "Alerts")} == {"open|warns"}


def test_a_caught_known_bad_control_is_no_alert(tmp_path: Path) -> None:
    put(tmp_path, 1, slower=2.0, broken=312.0, answers=WRONG, builds=KNOWN_BAD)
    assert alerts(tmp_path) == ()


def test_what_a_planted_fault_does_is_no_alert(tmp_path: Path) -> None:
    healthy, same = EQUAL
    put(tmp_path, 1, slower=2.0, builds=(healthy, replace(same, label=f"{same.label}+slow-step")))
    assert alerts(tmp_path) == ()
    put(tmp_path, 2, slower=2.0, builds=UPGRADE)  # as bad, and nobody wanted it
    assert {alert.subject.contender for alert in alerts(tmp_path)} == {UPGRADE[1].label}


def test_a_known_bad_control_that_is_not_caught_is_an_alert_until_it_is(tmp_path: Path) -> None:
    put(tmp_path, 1, slower=2.0, builds=KNOWN_BAD)
    (missed,) = alerts(tmp_path)
    assert (missed.cause.lead.metric, missed.bad.verdict) == (CONTROL, Verdict.FAILED)
    assert (missed.status, missed.rank) == (Status.OPEN, Action.BLOCK)
    document = view(tmp_path, "alerts", alert=missed.subject.key)
    assert "was like the healthy engine in all" in said(document)
    put(tmp_path, 2, broken=312.0, builds=KNOWN_BAD)
    (caught,) = alerts(tmp_path)
    assert caught.status is Status.RESOLVED


def test_a_fix_that_a_release_lost_is_the_worst_of_news(tmp_path: Path) -> None:
    lost = a_build(
        "cpu-0.28.0", release="0.28.0", fixes={"padded-rows-prefilling": FixState.LACKING}
    )
    put(tmp_path, 1, broken=312.0, builds=(UPGRADE[0], lost))
    (alert,) = alerts(tmp_path)
    assert alert.cause.lead.metric == "contract.padded_rows_prefilling"


def three_answered(results: Path) -> None:
    """Three alerts on two scenarios: one acknowledged, one muted, one open; and one resolved."""
    put(results, 2, slower=1.5, answers=WRONG, builds=UPGRADE)
    put(results, 3, broken=7.0, builds=UPGRADE, scenario="smoke/other")
    put(results, 4, broken=7.0, builds=UPGRADE, scenario="smoke/third")
    put(results, 5, builds=UPGRADE, scenario="smoke/third")
    by_name = {f"{a.subject.scenario} {a.subject.area.value}": a for a in alerts(results)}
    known = by_name["smoke/padded-graph-rows speed"]
    act(results, known, acknowledge("the new scheduler"), "Ada", 5)
    act(results, by_name["smoke/other contract"], mute(NOW + timedelta(days=3), NOW, ""), "Ben", 4)
    known = next(a for a in alerts(results) if a.subject == known.subject)
    act(results, known, assign("Cleo"), "Ada", 3)


@pytest.mark.parametrize(
    ("asked", "statuses"),
    [
        ({}, ["open|blocks", "acknowledged|blocks", "muted until 2026-04-03|blocks"]),
        ({"status": "open"}, ["open|blocks"]),
        ({"status": "acknowledged"}, ["acknowledged|blocks"]),
        ({"status": "muted"}, ["muted until 2026-04-03|blocks"]),
        ({"status": "resolved"}, ["resolved|blocks"]),
        ({"scenario": "smoke/other"}, ["muted until 2026-04-03|blocks"]),
        ({"assigned": "Cleo"}, ["acknowledged|blocks"]),
        ({"assigned": "", "status": "acknowledged"}, None),
    ],
)
def test_the_address_chooses_what_is_listed(tmp_path: Path, asked, statuses) -> None:
    three_answered(tmp_path)
    document = view(tmp_path, "alerts", **asked)
    assert document.complaints == ()
    if statuses is None:
        assert "No alert is of this status, scenario and person." in said(document)
    else:
        assert [row[5] for row in rows(document, "Alerts")] == statuses


def test_the_list_tells_the_newest_act(tmp_path: Path) -> None:
    three_answered(tmp_path)
    told = {row[6] for row in rows(view(tmp_path, "alerts"), "Alerts")}
    assert told == {"Ada assigned Cleo|3 h ago", "Ben muted until 2026-04-03|4 h ago", ""}


def test_one_alert_tells_its_whole_story_and_leads_back(tmp_path: Path) -> None:
    for night, slower in ((2, 1.5), (3, 0.7), (4, 1.5)):
        put(tmp_path, night, slower=slower, builds=UPGRADE)
    (alert,) = alerts(tmp_path)
    issue = "https://github.com/vllm-project/vllm/issues/57720"
    act(tmp_path, alert, link(issue), "Ada")
    document = view(tmp_path, "alerts", alert=alert.subject.key, status="open")
    happened = rows(document, "What happened, the newest first")
    assert [row[1].split(":")[0] for row in happened] == [
        "Ada linked an issue",
        "came back by run\N{NO-BREAK SPACE}00000004 of 0.28.0",
        "closed as not repeated by run\N{NO-BREAK SPACE}00000003 of 0.28.0",
        "opened by run\N{NO-BREAK SPACE}00000002 of 0.28.0",
    ]
    links = {
        piece.text: piece.to if isinstance(piece.to, str) else piece.to.href()
        for block in all_blocks(document)
        if type(block).__name__ in {"Paragraph", "Facts"}
        for line in (getattr(block, "line", ()), *(v for _, v in getattr(block, "rows", ())))
        for piece in (line if isinstance(line, tuple) else (line,))
        if isinstance(piece, Link)
    }
    assert links[issue] == issue
    assert links["Alerts"] == "alerts?status=open"
    assert document.address.values("alert") == (alert.subject.key,)


def test_a_long_story_is_folded(tmp_path: Path) -> None:
    put(tmp_path, 2, broken=1.0, builds=UPGRADE)
    for number in range(9):
        act(tmp_path, alerts(tmp_path)[0], note(f"note {number}"), "Ada", 9 - number)
    document = view(tmp_path, "alerts", alert=alerts(tmp_path)[0].subject.key)
    folded = next(b for b in document.blocks if type(b).__name__ == "Folded")
    assert getattr(folded, "title", "") == "What happened (10)"


def test_an_alert_that_is_gone_is_reported_with_the_way_to_the_list(tmp_path: Path) -> None:
    put(tmp_path, 2, broken=1.0, builds=UPGRADE)
    document = view(tmp_path, "alerts", alert="0" * 32)
    assert document.title == "No such alert"
    assert "which is not in this store" in document.complaints[0]
    (way,) = document.blocks
    assert isinstance(way, Paragraph)
    assert plain(way.line) == "See 1 alert of this store."
    assert listed(source_of(tmp_path), document.address) == (), "nothing is answered unseen"


def test_decisions_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    put(tmp_path, 2, broken=1.0, builds=UPGRADE)
    (tmp_path / DATABASE_FILE).write_bytes(b"no database" * 100)
    notice = notices(view(tmp_path, "alerts"))[-1]
    assert not notice.quiet
    assert DATABASE_FILE in str(notice.lines[0])


def test_a_long_list_is_paged(tmp_path: Path) -> None:
    for number in range(52):
        put(tmp_path, -number, broken=1.0, builds=UPGRADE, scenario=f"many/s{number:02}")
    first, second = view(tmp_path, "alerts"), view(tmp_path, "alerts", page="2")
    found = len(alerts(tmp_path))
    assert found >= 52, "one a scenario, and what noise alone makes of their times"
    assert (len(rows(first, "Alerts")), len(rows(second, "Alerts"))) == (50, found - 50)
    assert f"Page 2 of 2, {found} alerts" in said(second)


def test_times_are_reported_from_now_on(tmp_path: Path) -> None:
    put(tmp_path, 30, broken=1.0, builds=UPGRADE)
    assert rows(view(tmp_path, "alerts"), "Alerts")[0][4].startswith("2026-03-31, 3 h ago")
