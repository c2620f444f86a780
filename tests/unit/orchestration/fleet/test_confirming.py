"""What alerts ask for: the pair again, then half of the builds between, within a day's budget."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hybridwatch.analysis.alerts import Status
from hybridwatch.orchestration.fleet.job import Purpose
from hybridwatch.orchestration.fleet.lookup import PlannedPair, asked, known_pairs, left_today
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
    return [job.builds for job in asked(alerts, [PlannedPair(JOB, "first"), *known], ORDER, NOW)]


def test_the_pair_is_measured_again_first_by_the_same_wish_and_series() -> None:
    (job,) = asked([alert("first")], [PlannedPair(JOB, "first")], ORDER, NOW)
    assert (job.builds, job.purpose, job.batch_id) == (JOB.builds, Purpose.CONFIRM, NIGHT)
    assert (job.series, job.options, job.until - job.planned_at) == (
        JOB.series,
        JOB.options,
        JOB.until - JOB.planned_at,
    )
    assert job.key != JOB.key


def test_nothing_more_is_asked_while_the_answer_is_open() -> None:
    assert builds([alert("first")], again("v5", "")) == []


def test_a_change_that_was_not_seen_again_asks_no_more() -> None:
    assert builds([alert("first")], again("v5", "second")) == []


def test_of_a_confirmed_change_the_middle_is_next() -> None:
    assert builds([alert("second")], again("v5", "second")) == [("v1", "v3")]
    assert builds([alert("second")], again("v5", "second"), again("v3", "")) == []


def test_a_build_from_before_is_no_news_of_the_line_that_is_watched() -> None:
    job = replace(JOB, options=replace(JOB.options, line="nightly"))
    (pair,) = asked([alert("first")], [PlannedPair(job, "first")], ORDER, NOW)
    assert pair.options.line == "nightly"
    order = ["v1", "mine@1a2b3c4d~conv-anchor", "v5"]
    known = [
        replace(one, job=replace(one.job, options=job.options)) for one in (again("v5", "second"),)
    ]
    (middle,) = asked([alert("second")], [PlannedPair(job, "first"), *known], order, NOW)
    assert (middle.builds[-1], middle.options.line) == (order[1], "mine-1a2b3c4d")


def test_the_half_with_the_change_is_searched() -> None:
    confirmed = again("v5", "second")
    good = again("v3", "third")
    assert builds([alert("second")], confirmed, good) == [("v1", "v4")]
    other = alert("third", key="other")
    assert builds([alert("second"), other], confirmed, good) == [("v1", "v2")]


def test_a_search_ends_at_neighbours() -> None:
    found = [again("v5", "second"), again("v3", "third"), again("v4", "fourth")]
    assert builds([alert("second")], *found) == []


@pytest.mark.parametrize("status", set(Status) - {Status.OPEN})
def test_an_answered_alert_asks_nothing(status) -> None:
    assert builds([alert("first", status=status)]) == []


def test_what_the_queue_did_not_measure_asks_nothing() -> None:
    assert builds([alert("elsewhere")]) == []


def test_builds_whose_order_is_unknown_are_only_confirmed() -> None:
    known = [PlannedPair(JOB, "first"), again("v5", "second")]
    assert asked([alert("second")], known, ["v5"], NOW) == []


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
