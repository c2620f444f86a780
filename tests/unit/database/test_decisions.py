"""Decisions on disk: kept, never overruled unseen, and discreet."""

import os
import sqlite3
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from hybridwatch.analysis.alert_decisions import Decision, TriageAction, TriageConflict
from hybridwatch.analysis.alert_timeline import JudgedMetric
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database import connection
from hybridwatch.database.connection import (
    DATABASE_FILE,
    NEWEST,
    Database,
    file_url,
    migrate,
    parsed,
)
from hybridwatch.database.decisions import EARLIER_FILE, TRIAGE_VARIABLE, open_triage
from hybridwatch.errors import TriageError
from tests.unit.analysis.alerts.builders import (
    QUESTION,
    SUBJECT,
    accept,
    acknowledge,
    alert_of,
    assign,
    build_alerts,
    duplicate,
    invalid,
    link,
    mute,
    nights,
    noon,
    note,
    reopen,
    unmute,
)
from tests.unit.analysis.alerts.test_actions import HOSTILE

BAD = Verdict.REGRESSION
SECRET = "correct-horse-battery"  # noqa: S105 (of no account)
VERSION_1 = Path(__file__).parents[2] / "fixtures" / "triage" / "version-1.sql"
RACER = Path(__file__).with_name("racer.py")


def everything(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def by_hand(place: str, statement: str) -> None:
    engine = create_engine(parsed(place, "the test's"))
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def acts() -> list[Decision]:
    day = noon(0)
    return [
        acknowledge("known since the upgrade"),
        link("https://github.com/vllm-project/vllm/issues/41873"),
        assign("Bob"),
        mute(noon(3), day, "until it is merged"),
        unmute(),
        note("line one\nline two"),
        reopen("again"),
        accept("the new level"),
        invalid("somebody compiled beside it"),
        duplicate("0" * 32),
    ]


def test_every_act_is_read_back_by_another(triage, place, tmp_path) -> None:
    known = alert_of(BAD).decisions
    for number, act in enumerate(acts()):
        alert = alert_of(BAD, decisions=known)
        known = triage.decide(alert, act, f"Ann {number}", noon(number))
    with open_triage(tmp_path) as other:
        assert other.decisions() == {SUBJECT.key: known}
    assert [entry.decision for entry in known.entries] == acts()
    assert [entry.number for entry in known.entries] == list(range(1, 11))
    assert known.entries[3].at == noon(3)
    assert {entry.seen for entry in known.entries} == {alert_of(BAD).seen}


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_texts_come_back_as_they_were(triage, words) -> None:
    odd = replace(QUESTION, contender=f"{words}\x00\ud800")
    (alert,) = build_alerts(nights(BAD, about=odd), {}, noon(0))
    who = words.replace("\n", "").replace("\t", "")
    triage.decide(alert, note(words), who, noon(0))
    (entry,) = triage.decisions()[alert.subject.key].entries
    assert (entry.decision.text, entry.who) == (words, who)


def test_times_are_kept_in_utc_wherever_they_were_taken(triage) -> None:
    tokyo = timezone(timedelta(hours=9))
    (judged,) = nights(BAD)
    (alert,) = build_alerts(
        [replace(judged, started_at=judged.started_at.astimezone(tokyo))], {}, noon(0)
    )
    kept = triage.decide(alert, note("x"), "Ann", noon(0).astimezone(tokyo))
    (entry,) = triage.decisions()[SUBJECT.key].entries
    assert (entry,) == kept.entries
    assert (entry.at, entry.seen.started_at) == (noon(0), judged.started_at)
    assert {entry.at.tzinfo, entry.seen.started_at.tzinfo} == {UTC}


def test_a_nameless_act_is_not_kept(triage) -> None:
    with pytest.raises(TriageError, match=r"^who: expected some words"):
        triage.decide(alert_of(BAD), note("x"), " ", noon(0))
    assert triage.decisions() == {}


def test_who_did_not_see_the_last_act_is_reported(triage) -> None:
    stale = alert_of(BAD)
    first = triage.decide(stale, acknowledge("noise"), "Ann", noon(0))
    with pytest.raises(TriageConflict, match=r"Ann \(2026-11-16 12:00 UTC\): acknowledge") as told:
        triage.decide(stale, mute(noon(5), noon(1)), "Bob", noon(1))
    assert told.value.meanwhile == first.entries
    assert triage.decisions() == {SUBJECT.key: first}
    again = alert_of(BAD, decisions=told.value.decisions)
    triage.decide(again, note("agreed"), "Bob", noon(1))
    assert triage.decisions()[SUBJECT.key].version == 2


def test_who_saw_acts_that_are_gone_is_reported(triage, place, tmp_path) -> None:
    known = triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
    ahead = replace(known, entries=(*known.entries, *known.entries))
    with pytest.raises(TriageConflict, match="look at it again"):
        triage.decide(alert_of(BAD, decisions=ahead), note("y"), "Bob", noon(0))


class Racer:
    """A process that acts when it is told to."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, RACER, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()


def race(place: str, rounds: int, *planted: str) -> list[list[str]]:
    """What Ann's and Bob's process say of each round, started off at the same moment."""
    racers = [Racer(place, name, str(rounds), *planted) for name in ("Ann", "Bob")]
    outcomes = []
    for _ in range(rounds):
        assert [racer.hear() for racer in racers] == ["ready"] * 2
        for racer in racers:
            racer.go()
        outcomes.append([racer.hear() for racer in racers])
    for racer in racers:
        racer.process.communicate()
        assert racer.process.returncode == 0
    return outcomes


def test_two_processes_at_once_one_wins_and_the_other_is_reported(
    place, tmp_path, monkeypatch
) -> None:
    right = (["won", "told of Ann"], ["told of Bob", "won"])
    assert [outcome for outcome in race(place, 10) if outcome not in right] == []
    monkeypatch.setenv(TRIAGE_VARIABLE, place)
    with open_triage(tmp_path) as triage:
        kept = [decisions.version for decisions in triage.decisions().values()]
    assert kept == [1] * 10


def test_the_race_would_see_somebody_overruled(tmp_path) -> None:
    # Planted: whoever is told acts again without asking anybody.
    outcomes = race(f"sqlite:///{tmp_path}/triage.sqlite", 3, "overrule")
    assert outcomes == [["won", "won"]] * 3


def test_threads_share_one(triage) -> None:
    def work(number: int) -> int:
        about = replace(QUESTION, scenario=f"s{number}")
        subject = replace(SUBJECT, scenario=about.scenario)
        for _ in range(5):
            decided = triage.decisions()
            (alert,) = build_alerts(nights(BAD, about=about), decided, noon(0))
            triage.decide(alert, note("x"), f"thread {number}", noon(0))
        version: int = triage.decisions()[subject.key].version
        return version

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [5] * 8


def test_looking_makes_no_file(tmp_path) -> None:
    with open_triage(tmp_path) as triage:
        assert triage.decisions() == {}
    assert list(tmp_path.iterdir()) == []


def test_it_lies_next_to_the_records(tmp_path) -> None:
    with open_triage(tmp_path) as triage:
        triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
    assert [path.name for path in tmp_path.iterdir()] == [DATABASE_FILE]
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (about,) = plain.execute("SELECT about ->> 'scenario' FROM triage_act").fetchone()
    assert about == "smoke/padded-graph-rows"


def test_readers_do_not_wait_for_a_writer(tmp_path) -> None:
    with open_triage(tmp_path) as triage:
        triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
        with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("DELETE FROM triage_act")
            assert triage.decisions()[SUBJECT.key].version == 1


def test_a_file_put_back_is_the_one_that_is_read(tmp_path) -> None:
    with open_triage(tmp_path) as triage:
        triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
        (tmp_path / DATABASE_FILE).unlink()
        triage.decide(alert_of(BAD), note("y"), "Ann", noon(0))
        assert triage.decisions()[SUBJECT.key].version == 1


def test_half_made_tables_are_completed(triage, place) -> None:
    by_hand(place, "CREATE TABLE hybridwatch_schema (version_num VARCHAR(32) NOT NULL)")
    assert triage.decisions() == {}
    assert triage.decide(alert_of(BAD), note("x"), "Ann", noon(0)).version == 1


def test_newer_tables_are_left_alone(triage, place) -> None:
    triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
    by_hand(place, "UPDATE hybridwatch_schema SET version_num = '9001'")
    said = f"found 9001, but this hybridwatch reads up to {NEWEST}: upgrade hybridwatch"
    with pytest.raises(TriageError, match=said):
        triage.decisions()
    with pytest.raises(TriageError, match=said):
        triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))


def test_an_act_that_nobody_knows_is_named(triage, place) -> None:
    triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))
    by_hand(place, "UPDATE triage_act SET deed = 'burn'")
    with pytest.raises(TriageError, match=rf"decision 1 on alert {SUBJECT.key}: 'burn'"):
        triage.decisions()


def test_a_folder_that_takes_no_file_is_named() -> None:
    nowhere = Path("/proc")  # refuses even root
    with open_triage(nowhere) as triage:
        assert triage.decisions() == {}
        with pytest.raises(TriageError, match=r"^/proc/hybridwatch\.sqlite: unable to open"):
            triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_named(tmp_path) -> None:
    tmp_path.chmod(0o500)
    with (
        open_triage(tmp_path) as triage,
        pytest.raises(TriageError, match=r"hybridwatch\.sqlite: unable to open"),
    ):
        triage.decide(alert_of(BAD), note("x"), "Ann", noon(0))


def test_a_file_that_is_no_database_is_named(tmp_path) -> None:
    (tmp_path / DATABASE_FILE).write_text("no database at all, but long enough to be one")
    with (
        open_triage(tmp_path) as triage,
        pytest.raises(TriageError, match=r"hybridwatch\.sqlite: file is not a database$"),
    ):
        triage.decisions()


@pytest.mark.parametrize(
    "told",
    [
        f"mysql://me:{SECRET}@localhost/x",
        f"postgresql+psycopg2://me:{SECRET}@localhost/x",
        f"postgresql://me:{SECRET}@localhost:port/x",
        f"me:{SECRET}@localhost",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=ro&uri=true",
        "sqlite:///x?timeout=1",
        "sqlite://host/x",
    ],
)
def test_another_url_is_refused_without_repeating_it(tmp_path, monkeypatch, told) -> None:
    monkeypatch.setenv(TRIAGE_VARIABLE, told)
    with pytest.raises(TriageError, match=r"^HYBRIDWATCH_TRIAGE: expected ") as error:
        open_triage(tmp_path)
    assert SECRET not in everything(error.value)


@pytest.mark.parametrize(
    "told",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/x",
        f"postgres://127.0.0.1:1/x?user=me&password={SECRET}",
        f"postgresql://me@127.0.0.1:1/x?sslpassword={SECRET}",
    ],
)
def test_no_password_is_in_an_error(tmp_path, monkeypatch, told) -> None:
    monkeypatch.setenv(TRIAGE_VARIABLE, told)

    # Without the driver this is about another error, which may not tell it either.
    def reach() -> None:
        with open_triage(tmp_path) as triage:
            assert SECRET not in repr(vars(triage)["name"])
            triage.decisions()

    with pytest.raises(TriageError, match=r"^postgresql\+psycopg://") as error:
        reach()
    assert SECRET not in everything(error.value)


def test_a_database_that_repeats_a_password_is_cut_short(tmp_path, monkeypatch) -> None:
    def lines() -> str:
        with open_triage(tmp_path) as triage, pytest.raises(TriageError) as error:
            triage.decisions()
        return str(error.value)

    (tmp_path / DATABASE_FILE).touch()
    fault = OperationalError("SELECT 1", {}, Exception(f"no entry\nfor {SECRET}"))
    monkeypatch.setattr("hybridwatch.database.connection.check_known", Mock(side_effect=fault))
    assert lines().endswith(f": no entry for {SECRET}")  # planted: nobody knows that it is one
    monkeypatch.setattr(connection, "find_secrets", lambda _: (SECRET,))
    assert lines().endswith(": no entry for ***")


def test_a_missing_driver_is_named_with_its_remedy(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv(TRIAGE_VARIABLE, f"postgresql://me:{SECRET}@localhost/x")
    with pytest.raises(
        TriageError, match=r"//me:\*\*\*@localhost/x: .* pip install 'psycopg"
    ) as error:
        open_triage(tmp_path)
    assert SECRET not in everything(error.value)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with a database of the first version, when every metric had an alert of its own."""
    with closing(sqlite3.connect(tmp_path / EARLIER_FILE)) as made:
        made.executescript(VERSION_1.read_text(encoding="utf-8"))
    return tmp_path


def of_metrics(*metrics: str, verdict: Verdict = BAD) -> list[JudgedMetric]:
    asked = replace(QUESTION, contender="cpu-0.28.0")  # as in the database of then
    return [
        one for metric in metrics for one in nights(verdict, about=replace(asked, metric=metric))
    ]


def test_what_was_decided_about_metrics_belongs_to_the_alert_that_has_them(old) -> None:
    with open_triage(old) as triage:
        decided = triage.decisions()
    slow = of_metrics("output_throughput", "ttft")
    dead = of_metrics("itl", verdict=Verdict.FAILED)
    engine, speed = build_alerts([*slow, *dead], decided, noon(0))
    told = [(entry.who, entry.decision.action) for entry in speed.decisions.all]
    assert told == [
        ("Ann", TriageAction.ACKNOWLEDGE),
        ("Ann", TriageAction.LINK),
        ("Ben", TriageAction.ASSIGN),
        ("Ben", TriageAction.MUTE),
    ]
    assert [entry.decision.text for entry in engine.decisions.notes] == ["the driver was new"]
    assert (speed.decisions.assignee, speed.decisions.version) == ("Bob", 0)
    assert speed.decisions.issue.endswith("/41873")


def test_an_old_answer_covers_its_metric_and_no_other(old) -> None:
    with open_triage(old) as triage:
        decided = triage.decisions()
    (alone,) = build_alerts(of_metrics("output_throughput"), decided, noon(0))
    (both,) = build_alerts(of_metrics("output_throughput", "tpot"), decided, noon(0))
    assert (alone.status, both.status) == (Status.ACKNOWLEDGED, Status.RELEASE)


@pytest.mark.parametrize("others_first", [False, True])
def test_acting_on_an_old_database_loses_nothing_and_is_read_back(old, others_first) -> None:
    """Tables that others needed first, without a decision in them, hide nothing of before."""
    if others_first:
        with Database(file_url(old / DATABASE_FILE)).writing() as connection:
            migrate(connection)
    judged = of_metrics("output_throughput", "ttft")
    with open_triage(old) as triage:
        (alert,) = build_alerts(judged, triage.decisions(), noon(0))
        triage.decide(alert, acknowledge("as before"), "Dora", noon(1))
        (alert,) = build_alerts(judged, triage.decisions(), noon(1))
    assert [entry.who for entry in alert.decisions.all] == ["Ann", "Ann", "Ben", "Ben", "Dora"]
    for file, kept in ((DATABASE_FILE, 6), (EARLIER_FILE, 5)):
        with closing(sqlite3.connect(old / file)) as plain:
            assert plain.execute("SELECT count(*) FROM triage_act").fetchone() == (kept,)


def test_what_was_decided_about_single_nights_belongs_to_their_line(triage) -> None:
    """As it was kept when every night's label made an alert of its own."""
    for number, label in enumerate(("mine@1a2b3c4d", "mine@2b3c4d5e", "other@1a2b3c4d")):
        (alert,) = build_alerts(nights(BAD, about=replace(QUESTION, contender=label)), {}, noon(0))
        triage.decide(alert, assign(f"Person {number}"), "Ann", noon(number))
        triage.decide(
            replace(alert, decisions=triage.decisions()[alert.subject.key]),
            acknowledge(f"known on {label}"),
            "Ann",
            noon(number),
        )
    judged = nights(BAD, BAD, BAD, about=replace(QUESTION, contender="mine"))
    (mine,) = build_alerts(judged, triage.decisions(), noon(3))
    assert mine.status is Status.ACKNOWLEDGED
    assert mine.decisions.assignee == "Person 1"
    answer = mine.decisions.answer
    assert answer is not None
    assert answer.decision.text == "known on mine@2b3c4d5e"
    assert (len(mine.decisions.earlier), mine.decisions.version) == (4, 0)
    triage.decide(mine, reopen("it is worse"), "Ben", noon(3))
    (mine,) = build_alerts(judged, triage.decisions(), noon(3))
    assert (mine.status, len(mine.decisions.all)) == (Status.OPEN, 5)
    another = nights(BAD, about=replace(QUESTION, contender="third"))
    assert build_alerts(another, triage.decisions(), noon(3))[0].status is Status.OPEN


def test_one_answer_for_many_is_kept_where_nobody_was_faster(triage) -> None:
    about = [replace(QUESTION, scenario=f"s{number}") for number in range(3)]
    shown = build_alerts([one for each in about for one in nights(BAD, about=each)], {}, noon(0))
    first = triage.decide(shown[1], note("mine"), "Bob", noon(0))
    failed = triage.decide_all(shown, accept("the new level"), "Ann", noon(0))
    assert list(failed) == [shown[1].subject.key]
    conflict = failed[shown[1].subject.key]
    assert isinstance(conflict, TriageConflict)
    assert conflict.meanwhile == first.entries
    kept = triage.decisions()
    assert {kept[shown[at].subject.key].answer.decision for at in (0, 2)} == {
        accept("the new level")
    }


def test_an_alert_is_no_duplicate_of_itself(triage) -> None:
    with pytest.raises(TriageError, match="expected another alert, found this one"):
        triage.decide(alert_of(BAD), duplicate(SUBJECT.key), "Ann", noon(0))
