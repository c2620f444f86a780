"""What alerts ask for: the pair again, then half of the builds between, within a day's budget."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hybridwatch.analysis.alerts import Status
from hybridwatch.orchestration.fleet.job import Purpose
from hybridwatch.orchestration.fleet.lookup import (
    PlannedPair,
    find_confirmations,
    known_pairs,
    left_today,
)
from tests.unit.orchestration.fleet.pretended import NOW, a_job

ORDER = ["v1", "v2", "v3", "v4", "v5"]
JOB = a_job(builds=("v1", "v5"))
NIGHT = "confirm abcdefab"


def alert(run_id: str, key: str = "abcdefab1234", status: Status = Status.OPEN):
    """As much of an alert as is asked about."""
    return SimpleNamespace(
        status=status,
        bad=SimpleNamespace(run_id=run_id),
        subject=SimpleNamespace(key=key),
    )


def again(contender: str, run_id: str) -> PlannedPair:
    """A job that was asked for."""
    job = replace(JOB, batch_id=NIGHT, purpose=Purpose.CONFIRM, builds=("v1", contender))
    return PlannedPair(job, run_id)


def builds(alerts, *known: PlannedPair) -> list[tuple[str, ...]]:
    return [
        job.builds
        for job in find_confirmations(alerts, [PlannedPair(JOB, "first"), *known], ORDER, NOW)
    ]


def test_the_pair_is_measured_again_first_by_the_same_wish_and_series() -> None:
    (job,) = find_confirmations([alert("first")], [PlannedPair(JOB, "first")], ORDER, NOW)
    assert (job.builds, job.purpose, job.batch_id) == (JOB.builds, Purpose.CONFIRM, NIGHT)
    assert (job.series, job.options, job.until - job.planned_at) == (
        JOB.series,
        JOB.options,
        JOB.until - JOB.planned_at,
    )
    assert job.key != JOB.key


CONFIRMED, MIDDLE = again("v5", "second"), again("v3", "third")


@pytest.mark.parametrize(
    ("run_id", "known", "asked_for"),
    [
        pytest.param("first", [again("v5", "")], [], id="open"),
        pytest.param("first", [CONFIRMED], [], id="not seen again"),
        pytest.param("second", [CONFIRMED], [("v1", "v3")], id="confirmed: the middle"),
        pytest.param("second", [CONFIRMED, again("v3", "")], [], id="the middle is open"),
        pytest.param("second", [CONFIRMED, MIDDLE], [("v1", "v4")], id="the later half"),
        pytest.param("second", [CONFIRMED, MIDDLE, again("v4", "4th")], [], id="neighbours"),
        pytest.param("elsewhere", [], [], id="not measured by this queue"),
    ],
)
def test_what_is_asked_next(run_id, known, asked_for) -> None:
    assert builds([alert(run_id)], *known) == asked_for


def test_the_half_with_the_change_is_searched() -> None:
    alerts = [alert("second"), alert("third", key="other")]
    assert builds(alerts, CONFIRMED, MIDDLE) == [("v1", "v2")]


def test_a_build_from_before_is_no_news_of_the_line_that_is_watched() -> None:
    job = replace(JOB, options=replace(JOB.options, line="nightly"))
    (pair,) = find_confirmations([alert("first")], [PlannedPair(job, "first")], ORDER, NOW)
    assert pair.options.line == "nightly"
    order = ["v1", "mine@1a2b3c4d~conv-anchor", "v5"]
    known = [
        replace(one, job=replace(one.job, options=job.options)) for one in (again("v5", "second"),)
    ]
    (middle,) = find_confirmations(
        [alert("second")], [PlannedPair(job, "first"), *known], order, NOW
    )
    assert (middle.builds[-1], middle.options.line) == (order[1], "mine-1a2b3c4d")


@pytest.mark.parametrize("status", set(Status) - {Status.OPEN})
def test_an_answered_alert_asks_nothing(status) -> None:
    assert builds([alert("first", status=status)]) == []


def test_builds_whose_order_is_unknown_are_only_confirmed() -> None:
    known = [PlannedPair(JOB, "first"), again("v5", "second")]
    assert find_confirmations([alert("second")], known, ["v5"], NOW) == []


def test_a_day_has_a_budget_for_alerts_and_searches(make_world) -> None:
    world = make_world()
    purposes = (Purpose.MEASURE, Purpose.CONFIRM, Purpose.PROBE, Purpose.PROBE)
    jobs = [a_job(number, purpose=one) for number, one in enumerate(purposes)]
    world.plan(jobs)
    world.job_queue.cancel([jobs[-1].key])  # never begun: it has cost nothing
    assert left_today(world.job_queue, 3) == 1
    assert left_today(world.job_queue, 1) == 0
    world.cluster.now += timedelta(days=1)
    assert left_today(world.job_queue, 3) == 3


def test_what_a_search_measures_is_no_pair_that_an_alert_asks_for_again(make_world) -> None:
    world = make_world()
    world.plan([a_job(1), a_job(2, purpose=Purpose.PROBE), a_job(3, purpose=Purpose.A_A)])
    assert [one.job for one in known_pairs(world.job_queue)] == [a_job(1)]
