"""Measures an order on a host, in processes of its own; and a cluster of this machine alone."""

import os
import platform
import queue
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hybridwatch.database.connection import DATABASE_VARIABLE
from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import FleetError, GpuError, HybridwatchError, RecordError
from hybridwatch.measurement.machine_state import kernel_seconds
from hybridwatch.measurement.testbed import HOST_VARIABLE, probe_testbed
from hybridwatch.orchestration.fleet.cluster import (
    Ended,
    Fate,
    HealthReport,
    HostOrder,
    JobCommand,
    JobResult,
    Node,
    Result,
    Work,
)
from hybridwatch.orchestration.fleet.job import Job
from hybridwatch.records.fields import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.records.file_parts import name_bulk, safe_name
from hybridwatch.records.store import list_records, read_file
from hybridwatch.system import nvidia
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.python_command import python_command

RESULTS_PLACEHOLDER: Final = "{results}"
_LOG_BYTES: Final = 4 * 2**20
_TURN_S: Final = 120
"""What a killed measurement left ends within seconds; a host that is still busy then is no host."""
_NOT_MY_TURN: Final = 75
_PREPARE_S: Final = 3600.0
_LOOK_S: Final = 1.0
_LEFT_S: Final = 2 * 86_400.0
_MINUTE: Final = 60.0


def build_job_command(job: Job, host: str, machine: str) -> JobCommand:
    """Say how a job is measured: by ``hybridwatch run``, as a person would."""
    us = python_command("-m", "hybridwatch")
    words = [*us, "run", job.scenario, "--results", RESULTS_PLACEHOLDER, *job.words]
    if job.options.line:
        words += ["--line", job.options.line]
    if job.options.phases:
        words += ["--phases", ",".join(job.options.phases)]
    return JobCommand(
        prepare=tuple((*us, "engine", *how) for how in _preparations(job)),
        command=tuple(words),
        prepare_s=_PREPARE_S,
        measure_s=job.options.minutes * _MINUTE,
        machine=machine,
        testbed_host=host,
    )


def _preparations(job: Job) -> Iterator[tuple[str, ...]]:
    """Say how the engines of a job are had: a release is installed, a commit laid over one."""
    options = job.options
    names = [one if one in options.commits else parse_label(one).spec.name for one in job.builds]
    if options.commits:
        yield "install", options.base
    for name in dict.fromkeys(names):
        if name not in options.commits:
            yield "install", name
            continue
        source = "add", name, "--source", options.clone, "--commit", options.commits[name]
        yield *source, "--base", options.base


def perform(work: Work, is_wanted: Callable[[], bool] = lambda: True) -> Result:
    """Do what was ordered; on the host, in a worker that may be killed at any moment."""
    if isinstance(work, JobCommand):
        return measure(work, is_wanted)
    return probe()


def measure(work: JobCommand, is_wanted: Callable[[], bool] = lambda: True) -> JobResult:
    """Measure, and give the record as bytes.

    What is started ends with this process (``system.guard``); until the last of it has ended, a
    lock keeps other measurements of the machine from beginning.
    """
    name = f"hybridwatch-fleet-{os.getuid()}-{safe_name(work.machine)}"
    place = Path(tempfile.gettempdir()) / name
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        _require_own(place)
        for left in place.glob("*/"):
            if time.time() - left.stat().st_mtime > _LEFT_S:
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=place) as folder:
            return _measured(work, place / "turn", Path(folder), is_wanted)
    except OSError as error:
        raise FleetError(f"{place}: cannot measure here: {error}") from error


def _require_own(place: Path) -> None:
    """Refuse a folder that another user made or can write: its name is known to all."""
    status = place.lstat()
    found = stat.filemode(status.st_mode), status.st_uid
    if found != ("drwx------", os.getuid()):
        raise FleetError(
            f"{place}: cannot measure here: expected a folder of user {os.getuid()} alone "
            f"(drwx------), found {found[0]} of user {found[1]}; remove it, or set TMPDIR"
        )


def _measured(
    work: JobCommand, turn: Path, folder: Path, is_wanted: Callable[[], bool]
) -> JobResult:
    log, results = folder / "log.txt", folder / "results"
    words = tuple(str(results) if word == RESULTS_PLACEHOLDER else word for word in work.command)
    stages = [*((one, work.prepare_s) for one in work.prepare), (words, work.measure_s)]
    # What cannot be prepared (a build of one's own is there or not) the last command says better;
    # and a record counts whatever its status was: it says itself what failed.
    reason = ""
    for command, seconds in stages:
        variables = {DATABASE_VARIABLE: "", HOST_VARIABLE: work.testbed_host}
        process = GuardedProcess((*_turn_at(turn), *command), log, variables)
        reason = _wait_for(process, seconds, is_wanted)
    return _read_result(results, log, reason or "it ended well, but left no record")


def _turn_at(lock: Path) -> tuple[str, ...]:
    """Give the words that make a command wait until nothing else has a lock, and keep it."""
    # The lock goes on to the command, and is free only when the last who has it has ended.
    conflict = f"--conflict-exit-code={_NOT_MY_TURN}"
    return ("flock", "--no-fork", f"--wait={_TURN_S}", conflict, str(lock))


def _wait_for(process: GuardedProcess, seconds: float, is_wanted: Callable[[], bool]) -> str:
    deadline = time.monotonic() + seconds
    try:
        while True:
            with suppress(TimeoutError):
                status = process.wait(_LOOK_S)
                break
            if not is_wanted():
                return "it was stopped"
            if time.monotonic() > deadline:
                return f"it was not done after {seconds / _MINUTE:g} minutes"
    finally:
        process.stop()
    if status == _NOT_MY_TURN:
        return f"something else measured on this machine for {_TURN_S} s"
    last_line = process.log_tail(1).strip()
    return f"it ended with status {status}: {last_line}" if status else ""


def _read_result(results: Path, log: Path, reason: str) -> JobResult:
    printed = b""
    with suppress(OSError):
        printed = log.read_bytes()[-_LOG_BYTES:]
    records = list_records(results)
    if len(records) != 1:
        extra = f"; found {len(records)} records instead of one" if records else ""
        return JobResult(printed, reason=reason + extra)
    (record,) = records
    bulk = name_bulk(record)
    try:
        content = read_file(record, MOST_RECORD_BYTES)
        bulk_content = read_file(bulk, MOST_BULK_BYTES) if bulk.exists() else None
    except RecordError as error:
        return JobResult(printed, reason=f"{record.name}: {error}")
    return JobResult(printed, content, bulk_content)


_ROUNDS = 12
"""Times that each side of the A/A has its turn: with five repetitions each, 0.01 s apiece, a host
has shown itself within two seconds."""


def probe() -> HealthReport:
    """Read the facts of this machine, and time the calibration kernel for two like sides."""
    try:
        devices = nvidia.devices()
    except GpuError:
        devices = ()  # whether it should have some, its testbeds say
    testbed = probe_testbed(devices)
    sides: tuple[list[float], list[float]] = ([], [])
    for turn in range(2 * _ROUNDS):
        sides[turn % 2].extend(kernel_seconds())
    facts = {
        "hybridwatch": version("hybridwatch"),
        "python": platform.python_version(),
        "testbed": testbed.id,
        "processor": testbed.cpu_model,
        "cores": str(testbed.cores),
        "kernel": testbed.kernel,
        "driver": testbed.driver or "",
        "gpus": ", ".join(testbed.gpus),
    }
    return HealthReport(facts, sides)


_PATIENCE_S: Final = 30.0

Do = Callable[[Work, Callable[[], bool]], Result]
"""Does work as long as it is wanted."""


class LocalCluster:
    """Hosts of this process: one as a rule, several in tests."""

    def __init__(self, nodes: Sequence[Node], do: Do = perform) -> None:
        self._nodes = tuple(nodes)
        self._do = do
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._unwanted: dict[str, threading.Event] = {}

    @classmethod
    def of_this_machine(cls, labels: Mapping[str, str], gpus: int) -> "LocalCluster":
        """Make one host of this machine, called as the machine is."""
        return cls([Node(socket.gethostname(), labels, gpus)])

    def nodes(self) -> Sequence[Node]:
        """Give them all."""
        return self._nodes

    def start(self, order: HostOrder) -> None:
        """Begin in a thread."""
        unwanted = self._unwanted[order.id] = threading.Event()
        arguments = order, unwanted
        threading.Thread(target=self._obey, args=arguments, name=order.id, daemon=True).start()

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Give what ended."""
        found: list[Ended] = []
        with suppress(queue.Empty):
            found.append(self._ended.get(timeout=wait_s))
            while True:
                found.append(self._ended.get_nowait())
        for one in found:
            del self._unwanted[one.order.id]
        return found

    def stop(self, order_id: str) -> None:
        """Signal its thread, which ends what it started."""
        if unwanted := self._unwanted.get(order_id):
            unwanted.set()

    def close(self) -> None:
        """Signal every thread, and wait until they have ended what they started."""
        for unwanted in self._unwanted.values():
            unwanted.set()
        deadline = time.monotonic() + _PATIENCE_S
        while self._unwanted and time.monotonic() < deadline:
            self.ended(_PATIENCE_S)

    def _obey(self, order: HostOrder, unwanted: threading.Event) -> None:
        try:
            result = self._do(order.work, lambda: not unwanted.is_set())
        except HybridwatchError as error:
            self._ended.put(Ended(order, Fate.DIED, reason=str(error)))
        except KeyboardInterrupt:  # this process is stopped: ``system.stopping``
            self._ended.put(Ended(order, Fate.STOPPED))
        else:
            fate = Fate.STOPPED if unwanted.is_set() else Fate.GAVE
            self._ended.put(Ended(order, fate, result))
