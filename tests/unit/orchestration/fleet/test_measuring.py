"""What a host does: measure in processes that end with it, one measurement at a time."""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet import measuring
from hybridwatch.orchestration.fleet.cluster import Fate, HostOrder, JobCommand, JobResult, Node
from hybridwatch.orchestration.fleet.job import JobOptions
from hybridwatch.orchestration.fleet.measuring import (
    RESULTS_PLACEHOLDER,
    LocalCluster,
    build_job_command,
    measure,
    perform,
)
from hybridwatch.records.codec import decode
from tests.unit.orchestration.fleet import pretended
from tests.unit.orchestration.fleet.pretended import a_job
from tests.waiting import LIMIT_S, wait_until


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ".")
    return tmp_path


def saying(*lines: str) -> JobCommand:
    """A measurement that runs a few lines of Python."""
    words = (sys.executable, "-c", "\n".join(lines), RESULTS_PLACEHOLDER)
    return JobCommand((), words, LIMIT_S, LIMIT_S, "box", "host")


def test_a_job_is_measured_as_a_person_would() -> None:
    labels = ("cpu-0.27.1", "cpu-0.27.1~padded-rows-prefilling")
    job = a_job(builds=labels, options=JobOptions(30.0, trials=9))
    work = build_job_command(job, "h1", "box")
    assert [words[-2:] for words in work.prepare] == [("install", "cpu-0.27.1")]
    assert work.command[4:7] == ("run", job.scenario, "--results")
    assert work.command[-2:] == ("--trials", "9")
    builds = [after for word, after in pairwise(work.command) if word == "--build"]
    assert builds == list(labels)
    assert (work.measure_s, work.machine, work.testbed_host) == (1800, "box", "h1")


def test_record_and_log_come_home_and_nothing_stays(place) -> None:
    result = measure(pretended.measurement(a_job(), "h1", "box"))
    assert decode(result.record, result.bulk).testbed.id == "made-up-h1"
    assert b"made up on h1" in result.log
    assert [path.name for path in place.glob("*/*")] == ["turn"]


def taken(place: Path, kind: str) -> Path:
    """The folder of our name, as another user may have left it."""
    folder, foreign = place / f"hybridwatch-fleet-{os.getuid()}-box", place / "foreign"
    (foreign / "old").mkdir(parents=True)
    os.utime(foreign / "old", (0, 0))
    if kind == "link":
        folder.symlink_to(foreign)
    else:
        foreign.rename(folder)
        folder.chmod(0o700 if kind == "owner" else 0o777)
    return folder


@pytest.mark.parametrize("kind", ["link", "mode", "owner"])
def test_a_folder_that_another_can_write_is_refused_and_left_alone(place, monkeypatch, kind):
    other = os.getuid() + (kind == "owner")
    monkeypatch.setattr(os, "getuid", lambda: other)
    folder = taken(place, kind)
    with pytest.raises(
        FleetError, match=r"expected a folder of user \d+ alone .* found "
    ) as caught:
        measure(saying("print()"))
    assert str(folder) in str(caught.value)
    assert (folder / "old").is_dir()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["print('no engine'); raise SystemExit(3)"], "it ended with status 3: no engine"),
        (["pass"], "it ended well, but left no record"),
    ],
)
def test_why_there_is_no_record_is_reported(lines, told) -> None:
    result = measure(saying(*lines))
    assert (result.record, result.reason) == (b"", told)


def test_what_takes_too_long_is_ended(monkeypatch) -> None:
    monkeypatch.setattr(measuring, "_LOOK_S", 0.01)
    work = replace(saying("import time; time.sleep(600)"), measure_s=0.0)
    assert "it was not done after" in measure(work).reason


def waiting_for_a_turn() -> int:
    """How many of our processes wait for a lock."""
    waiting = 0
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            waiting += one.name() == "flock" and one.status() == psutil.STATUS_SLEEPING
    return waiting


def test_two_measurements_of_a_machine_take_turns(place) -> None:
    lines = (
        "import pathlib, sys",
        "from tests.waiting import wait_until",
        f"busy = pathlib.Path({str(place)!r}) / 'busy'",
        "busy.mkdir()",  # fails while another one has it
        "go_on = busy.with_name('go on')",
        "wait_until(go_on.exists, 'the others')",
        "busy.rmdir()",
    )
    reasons: list[str] = []
    threads = [
        threading.Thread(target=lambda: reasons.append(measure(saying(*lines)).reason))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    # The first one goes on when the others stand at the lock, or are past it.
    wait_until(lambda: waiting_for_a_turn() == 2 or reasons, "two that wait for their turn")
    (place / "go on").touch()
    for thread in threads:
        thread.join()
    assert reasons == ["it ended well, but left no record"] * 3


def test_what_is_not_wanted_any_more_is_ended(place, monkeypatch) -> None:
    monkeypatch.setattr(measuring, "_PATIENCE_S", LIMIT_S)
    cluster = LocalCluster([Node("h1", {})])
    begun = place / "begun"
    work = saying(f"import time; open({str(begun)!r}, 'w').close(); time.sleep(600)")
    cluster.start(HostOrder("one", "h1", 0, work))
    wait_until(begun.exists, "a measurement")
    cluster.stop("one")
    (ended,) = cluster.ended(LIMIT_S)
    assert ended.fate is Fate.STOPPED
    cluster.start(HostOrder("two", "h1", 0, work))
    cluster.close()
    assert cluster.ended(0) == []


def test_an_interrupt_ends_an_order() -> None:
    def interrupted(_work, _is_wanted) -> JobResult:
        raise KeyboardInterrupt

    cluster = LocalCluster([Node("h1", {})], interrupted)
    cluster.start(HostOrder("one", "h1", 0, saying("pass")))
    (ended,) = cluster.ended(LIMIT_S)
    assert ended.fate is Fate.STOPPED


def test_a_proof_is_performed_too() -> None:
    from hybridwatch.orchestration.fleet.cluster import HealthReport

    assert isinstance(perform(None), HealthReport)
