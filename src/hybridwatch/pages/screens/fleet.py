"""A fleet: what is measured now, what waits, what went wrong, the hosts; and each of its jobs."""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.errors import HybridwatchError
from hybridwatch.orchestration.fleet.job import HostStatus, Job, JobState
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.lookup import AttemptRecord, JobHistory, load_job_history
from hybridwatch.orchestration.fleet.overview import (
    BatchOverview,
    HostLine,
    Overview,
    Trouble,
    Underway,
    read_overview,
)
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Code,
    Column,
    Command,
    Document,
    Facts,
    Inline,
    Link,
    Notice,
    Paragraph,
    Row,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.screen import ScreenSource, trouble_notice
from hybridwatch.records.store.layout import read_run_id

TITLE: Final = "Fleet"
_LEAD: Final = "Many hosts measure the jobs of one queue; each series stays on its host."
JOB: Final = "Job of a fleet"
_LOG_LINES: Final = 400


def _open_queue(source: ScreenSource) -> JobQueue:
    """Open the queue of a store, as of the moment that the page is of."""
    return JobQueue(Database(find_database_url(source.results)), lambda: source.now)


def _job(job: Job) -> tuple[Link, str]:
    """Lead to all that is known of a job, its log among it, and name its builds."""
    return Link(job.scenario, address("job", job=job.key)), " against ".join(job.builds)


def _ago(moment: datetime | None, source: ScreenSource) -> Inline:
    return "-" if moment is None else source.ago(moment)


def show(source: ScreenSource, query: ViewQuery) -> Document:  # noqa: ARG001 (nothing can be chosen)
    """Show how the queue stands."""
    try:
        overview = read_overview(_open_queue(source))
    except HybridwatchError as error:
        return Document(TITLE, (trouble_notice("The queue cannot be read", error),), lead=_LEAD)
    if not overview.batches:
        hint = "Nothing was planned yet. A matrix in fleet.toml says what to measure where:"
        return Document(TITLE, (Paragraph(hint), Command("hybridwatch fleet plan")), lead=_LEAD)
    return Document(TITLE, tuple(_blocks(overview, source)), lead=_LEAD)


def _blocks(overview: Overview, source: ScreenSource) -> Iterator[Block]:
    barred = [host for host in overview.hosts if host.standing is HostStatus.QUARANTINED]
    if barred:
        title = f"{plural(len(barred), 'host')} in quarantine"
        yield Notice(title, tuple(f"{one.name}: {one.reason}" for one in barred))
    waiting = overview.waiting or {}
    yield Facts(
        (
            ("Measured now", str(len(overview.underway))),
            ("Wait for their turn", str(waiting.get("", 0))),
            ("Wait for a host", str(sum(waiting.values()) - waiting.get("", 0))),
            ("Over, going by earlier measurements", _ago(overview.ends_at, source)),
        )
    )
    held_up = sorted((reason, count) for reason, count in waiting.items() if reason)
    if held_up:
        lines = tuple(f"{plural(count, 'job')}: {reason}" for reason, count in held_up)
        yield Notice("Why jobs wait", lines, quiet=True)
    if overview.underway:
        yield _underway(overview.underway, source)
    yield _batches(overview.batches, source)
    if overview.troubles:
        yield _troubles(overview.troubles)
    if overview.hosts:
        yield _hosts(overview.hosts, source)


def _underway(jobs: Sequence[Underway], source: ScreenSource) -> Table:
    columns = ("scenario", "builds", "host", "begun", "ends")
    rows = tuple(
        (*_job(one.job), one.host, source.ago(one.since), _ago(one.ends_at, source)) for one in jobs
    )
    return Table("Measured now", columns, rows, visible=True)


def _batches(batches: Sequence[BatchOverview], source: ScreenSource) -> Table:
    counts = tuple(Column(state.value, number=True) for state in JobState)
    rows: tuple[Row, ...] = tuple(
        (
            one.name,
            source.ago(one.planned_at),
            *(str(one.states.get(state, 0)) for state in JobState),
        )
        for one in batches
    )
    return Table("Nights", ("night", "planned", *counts), rows, visible=True)


def _troubles(troubles: Sequence[Trouble]) -> Table:
    columns = ("scenario", "builds", "night", "state", Column("why", wide=True))
    rows = tuple(
        (*_job(one.job), one.job.batch_id, one.state.value, one.reason) for one in troubles
    )
    return Table("Without a record", columns, rows, visible=True)


def _hosts(hosts: Sequence[HostLine], source: ScreenSource) -> Table:
    columns = (
        "host",
        "state",
        "seen",
        Column("series", number=True, title="Series that it keeps"),
        "last proof",
        Column("A/A", number=True, title="By how much its two like halves differed"),
        Column("why", wide=True),
    )
    rows: list[Row] = []
    for host in hosts:
        state = host.standing.value if host.is_there else f"{host.standing.value}, absent"
        proven = _ago(host.proven_at, source)
        steady = Cell("-") if host.a_a is None else Cell(f"{host.a_a - 1:+.1%}", raw=host.a_a)
        seen = source.ago(host.seen_at)
        rows.append((host.name, state, seen, str(host.series), proven, steady, host.reason))
    return Table("Hosts", columns, tuple(rows), visible=True)


def show_job(source: ScreenSource, query: ViewQuery) -> Document:
    """Show the job that the address names."""
    key = query.text("job")
    fleet: Inline = Link("all jobs", address("fleet"))
    try:
        job_queue = _open_queue(source)
        history = load_job_history(job_queue, key) if key and job_queue.is_made() else None
    except HybridwatchError as error:
        return Document(JOB, (trouble_notice("There is no such job", error),), lead=fleet)
    if history is None:
        notice = Notice("No job is named", ("The page of the fleet lists them.",), quiet=True)
        return Document(JOB, (notice,), lead=fleet)
    return Document(JOB, tuple(_job_blocks(history, source)), lead=fleet)


def _job_blocks(history: JobHistory, source: ScreenSource) -> Iterator[Block]:
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
    columns = (*names, Column("why", wide=True))
    rows: list[Row] = []
    for one in attempts:
        how = (_ago(one.ended_at, source), one.end or "it runs", one.reason)
        rows.append((str(one.number), one.host, source.ago(one.started_at), *how))
    return Table("Attempts", columns, tuple(rows), visible=True)


def _tail(log: Path) -> str:
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, maxlen=_LOG_LINES))
    except OSError as error:
        return f"{log.name} cannot be read: {error.strerror}"
