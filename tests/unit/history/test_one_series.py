"""A nightly is one line whatever its labels, and each definition of a scenario is a series.

Runs that stay whole when a store is pruned: somebody or something rests on them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.alerts import Alert, Status
from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.analysis.policy import STRICT
from hybridwatch.database.queries import Index, open_index
from hybridwatch.formats.write.points import to_csv
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.lines import Line, build_lines
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.history.resting import old_runs, runs_that_stay
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import TopicStatus
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.records import identity as record_line
from hybridwatch.records.identity import EngineBuild
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, read_run, write_run
from tests.builders import BASELINE, SCENARIO, STARTED, TESTBED, a_build, a_run, noisy
from tests.unit.database.stores import add, opened

NIGHTS = 30
FAULT_AT = 20
NOW = STARTED + timedelta(days=NIGHTS)
TTFT = find_metric("ttft")


def night_of(number: int) -> datetime:
    return STARTED + timedelta(days=number)


def dated(number: int) -> EngineBuild:
    return a_build(f"nightly-{night_of(number):%Y%m%d}", release=f"0.28.1.dev{number}")


def digested(number: int) -> EngineBuild:
    return a_build(f"mine@{number:08x}", code_digest=f"{number:064x}")


def stated(number: int) -> EngineBuild:
    return a_build(f"{chr(97 + number % 26)}{number}", line="nightly")


def a_night(number: int, build: EngineBuild, *, factor: float = 1.0, **changes: object) -> Run:
    return a_run(
        {"ttft": noisy(0.1, 9, 0.01, seed=number)},
        {"ttft": noisy(0.1 * factor, 9, 0.01, seed=number + 1000)},
        builds=(BASELINE, build),
        **{"id": f"{number:08x}", "started_at": night_of(number), **changes},
    )


def measured(results: Path, build: Callable[[int], EngineBuild], fault_at: int = FAULT_AT) -> Index:
    for number in range(NIGHTS):
        factor = 1.3 if number >= fault_at else 1.0
        write_run(results, a_night(number, build(number), factor=factor))
    return open_index(results)


def open_alerts(results: Path, index: Index) -> list[Alert]:
    found = find_alerts(results, index, Checkout(), NOW)
    return [alert for alert in found if alert.status is Status.OPEN]


def histories(index: Index) -> list[Line]:
    series = index.series(SCENARIO.id, TESTBED.id, "ttft", "median")
    settings = index.settings(SCENARIO.id)
    return build_lines(series, TTFT, newest=200, over_releases=False, settings=settings)


@pytest.mark.parametrize(
    ("build", "line"), [(dated, "nightly"), (digested, "mine"), (stated, "nightly")]
)
def test_a_fault_of_a_nightly_under_a_new_label_each_night_is_one(tmp_path, build, line) -> None:
    index = measured(tmp_path, build)
    (alert,) = open_alerts(tmp_path, index)
    assert alert.opened_by.started_at == night_of(FAULT_AT)
    assert (alert.subject.baseline, alert.subject.contender) == (BASELINE.label, line)
    assert len(alert.run_verdicts) == NIGHTS

    (mine,) = [one for one in histories(index) if one.name == line]
    assert len(mine.levels) == NIGHTS
    assert len(set(mine.levels["build"])) == NIGHTS
    (point,) = mine.history.points
    assert (point.index, point.state) == (FAULT_AT, HistoryState.CONFIRMED)

    findings = findings_for((), tmp_path, STRICT, now=NOW)
    assert [report.contender.run_id for report in findings.reports] == [f"{NIGHTS - 1:08x}"]
    assert not findings.gate.passed

    topics = gather_topics(TopicPlace(tmp_path, index, Checkout()), NOW)
    assert [topic.key for topic in topics if topic.standing is TopicStatus.OPEN] == [
        alert.subject.key
    ]


def test_without_lines_every_night_would_be_an_alert_of_its_own(tmp_path, monkeypatch) -> None:
    for place in ("records.identity", "database.reading", "database.heads"):
        monkeypatch.setattr(f"hybridwatch.{place}.name_line", lambda build: build.label)
    assert record_line.name_line(dated(1)) == dated(1).label
    index = measured(tmp_path, dated)
    assert len(open_alerts(tmp_path, index)) == NIGHTS - FAULT_AT


def test_a_planted_fault_in_a_nightly_is_no_night_of_it(tmp_path) -> None:
    index = measured(tmp_path, dated, fault_at=NIGHTS)
    control = dated(NIGHTS)
    control = replace(control, label=f"{control.label}+slow-step", line="nightly")
    write_run(tmp_path, a_night(NIGHTS, control, factor=1.3))
    assert open_alerts(tmp_path, open_index(tmp_path)) == []
    assert {one.name for one in histories(open_index(tmp_path))} == {
        "nightly",
        "nightly+slow-step",
        BASELINE.label,
    }
    assert index.counts["runs"] == NIGHTS


def test_last_nights_build_next_to_tonights_is_no_second_point_of_the_line(tmp_path) -> None:
    for number in range(1, NIGHTS):
        factors = [1.3 if at >= FAULT_AT else 1.0 for at in (number - 1, number)]
        run = a_run(
            *(
                {"ttft": noisy(0.1 * factor, 9, 0.01, seed=2 * number + side)}
                for side, factor in enumerate(factors)
            ),
            builds=(dated(number - 1), dated(number)),
            id=f"{number:08x}",
            started_at=night_of(number),
        )
        write_run(tmp_path, run)
    (line,) = histories(open_index(tmp_path))
    assert line.levels["build"].tolist() == [dated(number).label for number in range(1, NIGHTS)]
    (point,) = line.history.points
    assert point.index == FAULT_AT - 1
    rows = to_csv(map(read_run, list_records(tmp_path))).decode().splitlines()
    assert len({row.split(",")[1] for row in rows[1:]}) == NIGHTS - 1
    assert {row.split(",")[12] for row in rows[1:]} == {"1"}, "the side of tonight's build alone"


LOADS: Mapping[int, str] = {1: "1" * 64, 64: "6" * 64}


def under(load: int) -> object:
    settings = {"max_concurrency": str(load), "model": "org/name"}
    return replace(SCENARIO, digest=LOADS[load], settings=settings)


def loads(results: Path, nights: Iterator[tuple[int, int, float]]) -> Index:
    """Measure one build alone: the number of a run, its load, and its time to a first token."""
    build = a_build("nightly", release="0.28.0")
    for number, load, ttft in nights:
        run = a_run(
            {"ttft": noisy(ttft, 9, 0.01, seed=number)},
            builds=(build,),
            id=f"{number:08x}",
            scenario=under(load),
            started_at=STARTED + timedelta(hours=12 * number),
        )
        write_run(results, run)
    return open_index(results)


def test_another_load_is_another_series_and_no_change(tmp_path) -> None:
    halves = ((n, 1, 0.1) if n < 24 else (n, 64, 0.9) for n in range(48))
    index = loads(tmp_path, halves)
    before, after = sorted(histories(index), key=lambda one: one.levels["started_at"].min())
    assert [one.title for one in (before, after)] == [
        "nightly (max_concurrency 1)",
        "nightly (max_concurrency 64)",
    ]
    assert before.history.points == after.history.points == ()
    assert before.breaks == ()
    (found,) = after.breaks
    assert (found.run, found.reason) == (f"{24:08x}", "max_concurrency 1 → 64")
    cells = index.cells()
    assert len(cells[(cells["metric"] == "ttft") & (cells["statistic"] == "median")]) == 2


def test_a_new_series_says_why_it_begins_though_its_build_has_another_name(tmp_path) -> None:
    for number in range(30):
        build = a_build("nightly" if number < 15 else "main", release="0.28.0")
        scenario = replace(SCENARIO, digest=("a" if number < 15 else "b") * 64)
        run = a_run({"ttft": noisy(0.1, 9, 0.01, seed=number)}, builds=(build,), scenario=scenario)
        write_run(tmp_path, replace(run, id=f"{number:08x}", started_at=night_of(number)))
    after, before = histories(open_index(tmp_path))
    assert (before.name, before.breaks) == ("nightly", ())
    (found,) = after.breaks
    assert (after.name, found.run) == ("main", f"{15:08x}")
    assert found.reason == "the scenario's definition changed, digest aaaaaaaa → bbbbbbbb"


def test_of_loads_in_turn_the_one_that_got_slower_is_found(tmp_path) -> None:
    turns = (
        (n, *((1, 0.1) if n % 2 else (64, 0.9 * (1.25 if n >= 40 else 1.0)))) for n in range(80)
    )
    found = {one.title: one for one in histories(loads(tmp_path, turns))}
    calm, slower = (found[f"nightly (max_concurrency {load})"] for load in (1, 64))
    assert calm.history.points == ()
    (point,) = slower.history.points
    assert (point.index, point.state) == (20, HistoryState.CONFIRMED)
    assert calm.breaks == slower.breaks == ()


def test_what_was_bad_under_one_load_is_not_good_again_by_another(tmp_path) -> None:
    for number in range(16):
        load, factor = (64, 1.3) if number % 2 else (1, 1.0)
        run = a_night(number, dated(number // 2), factor=factor, scenario=under(load))
        write_run(tmp_path, run)
    (alert,) = open_alerts(tmp_path, open_index(tmp_path))
    assert alert.opened_by.run_id == f"{1:08x}"
    findings = findings_for((), tmp_path, STRICT, now=night_of(16))
    assert len(findings.reports) == 2


def test_a_changed_definition_answers_for_the_one_before(tmp_path) -> None:
    for number in range(8):
        load, factor = (1, 1.3) if number < 4 else (64, 1.0)
        write_run(tmp_path, a_night(number, dated(number), factor=factor, scenario=under(load)))
    assert open_alerts(tmp_path, open_index(tmp_path)) == []
    findings = findings_for((), tmp_path, STRICT, now=night_of(8))
    assert [report.scenario.digest for report in findings.reports] == [LOADS[64]]
    assert findings.gate.passed


RESTED, STEP = 24, 12


@pytest.fixture
def results(tmp_path):
    """Nights of two builds; from one on the contender is slower."""
    for night in range(RESTED):
        add(tmp_path, night, slower=1.0 if night < STEP else 1.4)
    return tmp_path


def stays(results, alerts=()):
    index = opened(results).index
    return runs_that_stay(results, index, alerts, lambda _done, _all: None)


def test_the_runs_on_both_sides_of_a_change_stay(results):
    found = stays(results)
    assert found[f"{STEP - 1:08x}"] == found[f"{STEP:08x}"] == "ttft changed next to it"
    assert len(found) == 2


def test_without_a_change_none_stays(tmp_path):
    for night in range(RESTED):
        add(tmp_path, night)
    assert stays(tmp_path) == {}


def test_the_runs_of_an_open_alert_stay(results):
    now = STARTED + timedelta(days=RESTED)
    alerts = find_alerts(results, opened(results).index, checkout_here(), now)
    assert {alert.opened_by.run_id for alert in alerts} <= stays(results, alerts).keys()
    assert f"{RESTED - 1:08x}" in stays(results, alerts)


def test_every_run_is_listed_once_with_its_builds(results):
    runs = old_runs(opened(results).index)
    assert len({run.run for run in runs}) == len(runs) == RESTED
    assert {len(run.like) for run in runs} == {5}
    assert runs[0].started_at == STARTED
