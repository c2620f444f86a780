"""Where jobs start: pure functions, so that every rule has its case."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.orchestration.fleet.job import (
    Fleet,
    Host,
    HostKind,
    HostStatus,
    JobOptions,
    Purpose,
    place,
    why_waiting,
)
from tests.unit.orchestration.fleet.pretended import ANY, NOW, a_job

GPU = HostKind(name="gpu", labels={"kind": "h100"}, gpus=2)


def a_host(name: str, **changes) -> Host:
    return replace(Host(name, name, {}, 0, HostStatus.READY), **changes)


def a_fleet(*hosts: Host, keepers=None, **changes) -> Fleet:
    fleet = Fleet(
        hosts={host.name: host for host in hosts},
        present=frozenset(host.name for host in hosts),
        keepers=keepers or {},
        testbeds={"any": ANY, "gpu": GPU},
    )
    return replace(fleet, **changes)


def places(jobs, fleet) -> list[tuple[str, str]]:
    return [(start.job.scenario[-3:], start.host) for start in place(jobs, fleet)]


A, B = a_host("a"), a_host("b")
JOB = a_job(1)
MAY_STAND_IN = a_job(1, options=JobOptions(60.0, stand_in=True))


def test_each_idle_host_gets_one_job() -> None:
    jobs = [a_job(number) for number in range(5)]
    assert [host for _, host in places(jobs, a_fleet(A, B))] == ["a", "b"]


def test_a_busy_host_gets_none() -> None:
    assert places([JOB], a_fleet(replace(A, job="other"))) == []


def test_hosts_of_one_machine_take_turns() -> None:
    pair = [replace(one, machine="box") for one in (A, B)]
    assert len(places([a_job(1), a_job(2)], a_fleet(*pair))) == 1
    assert places([JOB], a_fleet(pair[0], replace(pair[1], job="other"))) == []


def test_a_series_goes_to_its_keeper_though_another_host_is_idle() -> None:
    keepers = {JOB.series: ["b"]}
    assert places([JOB], a_fleet(A, B, keepers=keepers)) == [("001", "b")]
    assert places([JOB], a_fleet(A, replace(B, job="other"), keepers=keepers)) == []


def test_all_builds_of_a_scenario_go_to_one_host() -> None:
    jobs = [JOB, a_job(1, builds=("cpu-0.28.0",))]
    assert len(places(jobs, a_fleet(A, B))) == 1


@pytest.mark.parametrize("standing", [HostStatus.QUARANTINED, HostStatus.NEW])
def test_a_series_waits_for_a_host_that_may_not_measure(standing) -> None:
    fleet = a_fleet(A, replace(B, standing=standing), keepers={JOB.series: ["b"]})
    assert places([JOB], fleet) == []


def test_a_series_waits_for_a_host_that_is_away() -> None:
    fleet = a_fleet(A, B, keepers={JOB.series: ["b"]}, present=frozenset("a"))
    assert places([JOB], fleet) == []
    assert why_waiting(JOB, fleet) == "its host b is absent"


def test_a_stand_in_measures_only_while_the_keeper_cannot() -> None:
    keepers = {MAY_STAND_IN.series: ["b"]}
    away = a_fleet(A, B, keepers=keepers, present=frozenset("a"))
    assert places([MAY_STAND_IN], away) == [("001", "a")]
    busy = a_fleet(A, replace(B, job="other"), keepers=keepers)
    assert places([MAY_STAND_IN], busy) == []


def test_a_stand_in_of_before_is_asked_again() -> None:
    keepers = {MAY_STAND_IN.series: ["b", "c"]}
    fleet = a_fleet(A, B, a_host("c"), keepers=keepers, present=frozenset("ac"))
    assert places([MAY_STAND_IN], fleet) == [("001", "c")]


def test_series_of_a_retired_host_begin_again() -> None:
    fleet = a_fleet(A, replace(B, standing=HostStatus.RETIRED), keepers={JOB.series: ["b"]})
    assert places([JOB], fleet) == [("001", "a")]


def test_a_host_needs_labels_and_gpus_of_the_testbed() -> None:
    job = a_job(1, testbed="gpu")
    small = a_host("small", labels={"kind": "h100"}, gpus=1)
    other = a_host("other", labels={"kind": "a100"}, gpus=8)
    right = a_host("right", labels={"kind": "h100", "rack": "7"}, gpus=2)
    assert places([job], a_fleet(small, other)) == []
    assert why_waiting(job, a_fleet(small, other)) == "no host is of the testbed gpu"
    assert places([job], a_fleet(small, other, right)) == [("001", "right")]


def test_a_job_for_one_host_goes_to_no_other() -> None:
    job = a_job(1, options=JobOptions(60.0, host="b"))
    assert places([job], a_fleet(A)) == []
    assert places([job], a_fleet(A, B)) == [("001", "b")]


def test_nothing_else_starts_on_a_host_that_has_to_show_an_a_a() -> None:
    steady = a_job(2, purpose=Purpose.A_A, options=JobOptions(60.0, host="a"), priority=9)
    fleet = a_fleet(A, unproven=frozenset({("a", "first")}))
    assert places([JOB, steady], fleet) == [("002", "a")]
    assert places([JOB], fleet) == []
    assert places([a_job(1, batch_id="second")], fleet) == [("001", "a")]


def test_the_order_is_urgency_then_keeper_then_age_then_length() -> None:
    urgent = a_job(1, priority=1)
    kept = a_job(2)
    older = a_job(3, now=NOW - timedelta(hours=1))
    longer = a_job(4, options=JobOptions(90.0))
    usual = a_job(5)
    jobs = [usual, longer, older, kept, urgent]
    hosts = [a_host(f"h{number}") for number in range(5)]
    fleet = a_fleet(*hosts, keepers={kept.series: ["h4"]})
    assert [name for name, _ in places(jobs, fleet)] == ["001", "002", "003", "004", "005"]


def test_a_new_series_goes_to_the_host_that_keeps_the_fewest() -> None:
    keepers = {"x": ["a"], "y": ["a"], "z": ["b"]}
    assert places([JOB], a_fleet(A, B, keepers=keepers)) == [("001", "b")]


def test_why_a_job_waits_names_host_and_reason() -> None:
    bad = replace(A, standing=HostStatus.QUARANTINED, reason="slower")
    assert why_waiting(JOB, a_fleet(bad)) == "the only host a is in quarantine: slower"
    assert why_waiting(JOB, a_fleet(replace(A, job="other"))) == ""
