"""A job of a fleet: every attempt at it, and the end of its log."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hybridwatch.errors import HybridwatchError
from hybridwatch.orchestration.fleet.lookup import Story, Tried, story_of
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Inline,
    Kind,
    Link,
    Notice,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.fleet import queue_of
from hybridwatch.pages.screens.screen import Source
from hybridwatch.records.store.layout import run_id_of

TITLE: Final = "Job of a fleet"
_LOG_LINES: Final = 400


def show(source: Source, query: ViewQuery) -> Document:
    """Show the job that the address names."""
    key = query.text("Job", "job").text
    fleet: Inline = Link("all jobs", address("fleet"))
    try:
        ledger = queue_of(source)
        story = story_of(ledger, key) if key and ledger.is_made() else None
    except HybridwatchError as error:
        notice = Notice(Kind.LOUD, "There is no such job", tuple(str(error).splitlines()))
        return Document(TITLE, (notice,), lead=fleet)
    if story is None:
        notice = Notice(Kind.QUIET, "No job is named", ("The page of the fleet lists them.",))
        return Document(TITLE, (notice,), lead=fleet)
    return Document(TITLE, tuple(_blocks(story, source)), lead=fleet)


def _blocks(story: Story, source: Source) -> Iterator[Block]:
    job = story.job
    record: Inline = "-"
    if story.record:
        run = run_id_of(Path(story.record))
        record = Link(run, address("run", run=run))
    yield Facts(
        (
            ("Scenario", job.scenario),
            ("Builds", " against ".join(job.builds)),
            ("Testbed", job.testbed),
            ("Night", job.night),
            ("For", job.purpose.value),
            ("State", ": ".join(filter(None, (story.state.value, story.reason)))),
            ("Run", record),
        )
    )
    if story.attempts:
        yield _attempts(story.attempts, source)
    logged = [one for one in story.attempts if one.log]
    if logged:
        yield Code(_tail(source.results / logged[-1].log), f"Log of attempt {logged[-1].number}")


def _attempts(attempts: tuple[Tried, ...], source: Source) -> Table:
    names = ("attempt", "host", "begun", "ended", "how")
    columns = (*map(Column, names), Column("why", wide=True))
    rows: list[tuple[Cell | Inline, ...]] = []
    for one in attempts:
        ended = "-" if one.ended_at is None else source.ago(one.ended_at)
        how = "it runs" if one.end is None else one.end.value
        rows.append((str(one.number), one.host, source.ago(one.started_at), ended, how, one.reason))
    return Table("Attempts", columns, tuple(rows), visible=True)


def _tail(log: Path) -> str:
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, maxlen=_LOG_LINES))
    except OSError as error:
        return f"{log.name} cannot be read: {error.strerror}"
