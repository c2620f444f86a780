"""A job of a fleet: every attempt at it, and the end of its log."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hybridwatch.errors import HybridwatchError
from hybridwatch.orchestration.fleet.lookup import AttemptRecord, JobHistory, load_job_history
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    FieldKind,
    Inline,
    Link,
    Notice,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.fleet import open_source_queue
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.records.store.layout import read_run_id

TITLE: Final = "Job of a fleet"
_LOG_LINES: Final = 400


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show the job that the address names."""
    key = query.text("Job", "job").text
    fleet: Inline = Link("all jobs", address("fleet"))
    try:
        job_queue = open_source_queue(source)
        history = load_job_history(job_queue, key) if key and job_queue.is_made() else None
    except HybridwatchError as error:
        notice = Notice(FieldKind.LOUD, "There is no such job", tuple(str(error).splitlines()))
        return Document(TITLE, (notice,), lead=fleet)
    if history is None:
        notice = Notice(FieldKind.QUIET, "No job is named", ("The page of the fleet lists them.",))
        return Document(TITLE, (notice,), lead=fleet)
    return Document(TITLE, tuple(_blocks(history, source)), lead=fleet)


def _blocks(history: JobHistory, source: ScreenSource) -> Iterator[Block]:
    job = history.job
    record: Inline = "-"
    if history.record:
        run = read_run_id(Path(history.record))
        record = Link(run, address("run", run=run))
    yield Facts(
        (
            ("Scenario", job.scenario),
            ("Builds", " against ".join(job.builds)),
            ("Testbed", job.testbed),
            ("Night", job.batch_id),
            ("For", job.purpose.value),
            ("State", ": ".join(filter(None, (history.state.value, history.reason)))),
            ("Run", record),
        )
    )
    if history.attempts:
        yield _attempts(history.attempts, source)
    logged = [one for one in history.attempts if one.log]
    if logged:
        yield Code(_tail(source.results / logged[-1].log), f"Log of attempt {logged[-1].number}")


def _attempts(attempts: tuple[AttemptRecord, ...], source: ScreenSource) -> Table:
    names = ("attempt", "host", "begun", "ended", "how")
    columns = (*map(Column, names), Column("why", wide=True))
    rows: list[tuple[Cell | Inline, ...]] = []
    for one in attempts:
        ended = "-" if one.ended_at is None else source.ago(one.ended_at)
        how = (ended, one.end or "it runs", one.reason)
        rows.append((str(one.number), one.host, source.ago(one.started_at), *how))
    return Table("Attempts", columns, tuple(rows), visible=True)


def _tail(log: Path) -> str:
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, maxlen=_LOG_LINES))
    except OSError as error:
        return f"{log.name} cannot be read: {error.strerror}"
