"""What a host does for an order: measure in a process family of its own, or show what it is."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.database.connection import DATABASE_VARIABLE
from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import FleetError, RecordError
from hybridwatch.measurement.testbed import HOST_VARIABLE
from hybridwatch.orchestration.fleet.cluster import JobCommand, JobResult, Result, Work
from hybridwatch.orchestration.fleet.job import Job
from hybridwatch.records.fields import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.records.file_parts import BULK_SUFFIX, safe_name
from hybridwatch.records.store import list_records, read_file
from hybridwatch.system.guarded import GuardedProcess

RESULTS_WORD: Final = "{results}"
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
    us = (sys.executable, "-m", "hybridwatch")
    words = [*us, "run", job.scenario, "--results", RESULTS_WORD, *job.words]
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
        source = (
            "--source",
            options.clone,
            "--commit",
            options.commits[name],
            "--base",
            options.base,
        )
        yield "add", name, *source


def always() -> bool:
    """Whether work is still wanted: where only ending us can say otherwise."""
    return True


def perform(work: Work, is_wanted: Callable[[], bool] = always) -> Result:
    """Do what was ordered; on the host, in a worker that may be killed at any moment.

    Raises:
        FleetError: A process could not be started.
    """
    if isinstance(work, JobCommand):
        return measure(work, is_wanted)
    from hybridwatch.orchestration.fleet.probing import probe  # needs what measures

    return probe()


def measure(work: JobCommand, is_wanted: Callable[[], bool] = always) -> JobResult:
    """Measure, and give the record as bytes.

    Everything that is started ends with this process, however that ends (``system.guard``). Until
    the last of it has ended no other measurement of the machine begins: they hold a lock.
    """
    name = f"hybridwatch-fleet-{os.getuid()}-{safe_name(work.machine)}"
    place = Path(tempfile.gettempdir()) / name
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        _tidy(place)
        with tempfile.TemporaryDirectory(dir=place) as folder:
            return _measured(work, place / "turn", Path(folder), is_wanted)
    except OSError as error:
        raise FleetError(f"{place}: cannot measure here: {error}") from error


def _tidy(place: Path) -> None:
    """Remove what workers that were killed have left."""
    for folder in place.glob("*/"):
        if time.time() - folder.stat().st_mtime > _LEFT_S:
            shutil.rmtree(folder, ignore_errors=True)


def _measured(
    work: JobCommand, turn: Path, folder: Path, is_wanted: Callable[[], bool]
) -> JobResult:
    log, results = folder / "log.txt", folder / "results"
    words = tuple(str(results) if word == RESULTS_WORD else word for word in work.command)
    stages = [*((one, work.prepare_s) for one in work.prepare), (words, work.measure_s)]
    # What cannot be prepared (a build of one's own is there or not) the last command says better;
    # and a record counts whatever its status was: it says itself what failed.
    reason = ""
    for command, seconds in stages:
        alone = _Alone((*_turn_at(turn), *command), log, work.testbed_host)
        reason = alone.run(seconds, is_wanted)
    return _read_result(results, log, reason or "it ended well, but left no record")


def _turn_at(lock: Path) -> tuple[str, ...]:
    """Give the words that make a command wait until nothing else has a lock, and keep it."""
    # The lock goes on to the command, and is free only when the last who has it has ended.
    conflict = f"--conflict-exit-code={_NOT_MY_TURN}"
    return ("flock", "--no-fork", f"--wait={_TURN_S}", conflict, str(lock))


@dataclass(frozen=True, slots=True)
class _Alone:
    """A command of a measurement."""

    words: Sequence[str]
    log: Path
    host: str

    def run(self, seconds: float, is_wanted: Callable[[], bool]) -> str:
        """Run it to its end, or for so long; gives why it failed."""
        variables = {DATABASE_VARIABLE: "", HOST_VARIABLE: self.host}
        process = GuardedProcess(self.words, self.log, variables)
        deadline = time.monotonic() + seconds
        try:
            while (status := _status(process)) is None:
                if not is_wanted():
                    return "it was stopped"
                if time.monotonic() > deadline:
                    return f"it was not done after {seconds / _MINUTE:g} minutes"
        finally:
            process.stop()
        if status == _NOT_MY_TURN:
            return f"something else measured on this machine for {_TURN_S} s"
        said = process.log_tail(1).strip()
        return f"it ended with status {status}: {said}" if status else ""


def _status(process: GuardedProcess) -> int | None:
    try:
        return process.wait(_LOOK_S)
    except TimeoutError:
        return None


def _read_result(results: Path, log: Path, reason: str) -> JobResult:
    printed = b""
    with suppress(OSError):
        printed = log.read_bytes()[-_LOG_BYTES:]
    records = list_records(results)
    if len(records) != 1:
        extra = f"; found {len(records)} records instead of one" if records else ""
        return JobResult(printed, reason=reason + extra)
    (record,) = records
    bulk = record.with_name(record.stem + BULK_SUFFIX)
    try:
        content = read_file(record, MOST_RECORD_BYTES)
        beside = read_file(bulk, MOST_BULK_BYTES) if bulk.exists() else None
    except RecordError as error:
        return JobResult(printed, reason=f"{record.name}: {error}")
    return JobResult(printed, content, beside)
