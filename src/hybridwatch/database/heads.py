"""Which records are about the same, without judging any: their heads are kept until they are."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Select, select

from hybridwatch.analysis.freshness import find_successor, successors
from hybridwatch.database.connection import Database, with_database
from hybridwatch.database.reading import Listed, RecordRows, lines_in, rules_digest
from hybridwatch.database.schema import RECORD, RUN, SIDE
from hybridwatch.database.writing import find_new, put_in_place
from hybridwatch.errors import RecordError
from hybridwatch.records.fields import MOST_RECORD_BYTES
from hybridwatch.records.file_parts import Head, read_head
from hybridwatch.records.identity import name_line
from hybridwatch.records.run import Run
from hybridwatch.records.store import Broken, RecordReader, StoreContents, Stored, read_file

_BATCH = 1000
"""Heads of a transaction; a second's work."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a run compares; ``same`` of two sides of one build: how quiet is the machine?"""

    scenario: str
    testbed: str
    digest: str
    lines: tuple[str, ...]
    same: bool


def read_newest(results: Path, reader: RecordReader | None = None) -> StoreContents:
    """Read the newest run for every question: scenario, definition, testbed, lines of builds.

    An older record of the same question is left unread. The runs come without answers, and with
    what could not be read: it is not known what that would have decided.
    """
    reader = reader or RecordReader()
    listed, questions = with_database(results, lambda database: _questions(database, results))
    newest: dict[_Question, Stored] = {}
    broken: list[Broken] = []
    for name, path in reversed(list(listed.items())):
        if (question := questions.get(name)) in newest:
            continue
        try:
            run = reader.bare(path)
        except RecordError as error:
            broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
        else:
            sides = [(build.label, name_line(build)) for build in run.builds]
            scenario = run.scenario
            question = question or _question(scenario.id, run.testbed.id, scenario.digest, sides)
            newest.setdefault(question, Stored(path, run))
    return StoreContents(tuple(reversed(newest.values())), tuple(reversed(broken)))


def read_alike(results: Path, run: Run, labels: Collection[str], newest: int) -> tuple[Run, ...]:
    """Read the ``newest`` runs of a run's scenario and testbed that have one of some builds.

    They are oldest first, without answers; the run itself and what cannot be read are left out.
    """
    wanted = (
        select(RECORD.c.path)
        .join_from(RUN, RECORD, RECORD.c.id == RUN.c.record)
        .where(
            RUN.c.scenario == run.scenario.id,
            RUN.c.digest == run.scenario.digest,
            RUN.c.testbed == run.testbed.id,
            RUN.c.run != run.id,
            RUN.c.record.in_(select(SIDE.c.record).where(SIDE.c.build.in_(labels))),
        )
        .order_by(RUN.c.started_at.desc(), RECORD.c.path.desc())
    )
    found: list[Run] = []
    reader = RecordReader()
    for path in _list_paths(results, wanted):
        if len(found) == newest:
            break
        try:
            other = reader.bare(path)
        except RecordError:
            continue
        if other.scenario == run.scenario:
            found.append(other)
    return tuple(reversed(found))


def paths_in_group(results: Path, group: str) -> tuple[Path, ...]:
    """Give where the records of a group of scenarios, or of no known one, lie, oldest first."""
    wanted = (
        select(RECORD.c.path)
        .outerjoin_from(RECORD, RUN, RECORD.c.id == RUN.c.record)
        .where(RUN.c.scenario.startswith(f"{group}/", autoescape=True) | RUN.c.record.is_(None))
        .order_by(RUN.c.started_at, RECORD.c.path)
    )
    return tuple(_list_paths(results, wanted))


def _list_paths(results: Path, wanted: Select[Any]) -> Iterator[Path]:
    def look(database: Database) -> Sequence[str]:
        _register(database, results)
        with database.reading() as connection:
            return connection.scalars(wanted).fetchall()

    return (results / path for path in with_database(results, look))


def _questions(
    database: Database, results: Path
) -> tuple[Mapping[str, Path], Mapping[str, _Question]]:
    """Give where records lie, and what each compares, by their names, oldest first.

    The successor of a definition that has ended takes its place.
    """
    listed = _register(database, results)
    wanted = (
        select(
            RECORD.c.path, RUN.c.started_at, RUN.c.scenario, RUN.c.testbed, RUN.c.digest,
            SIDE.c.build, SIDE.c.line,
        )
        .join_from(RUN, RECORD, RECORD.c.id == RUN.c.record)
        .join(SIDE, SIDE.c.record == RUN.c.record)
        .order_by(SIDE.c.record, SIDE.c.side)
    )  # fmt: skip
    with database.reading() as connection:
        rows = connection.execute(wanted).fetchall()
    found: dict[str, _Question] = {}
    measured: defaultdict[tuple[str, str], list[tuple[str, datetime]]] = defaultdict(list)
    for (name, started_at, scenario, testbed, digest), sides in groupby(rows, lambda row: row[:5]):
        builds = [(label, line) for *_, label, line in sides]
        found[name] = _question(scenario, testbed, digest, builds)
        measured[scenario, testbed].append((digest, started_at))
    ended = {place: successors(runs) for place, runs in measured.items()}
    return (
        {name: one.path for name, one in listed.items()},
        {
            name: replace(one, digest=find_successor(one.digest, ended[one.scenario, one.testbed]))
            for name, one in found.items()
        },
    )


def _question(
    scenario: str, testbed: str, digest: str, sides: Sequence[tuple[str, str]]
) -> _Question:
    labels, lines = zip(*sides, strict=True)
    return _Question(scenario, testbed, digest, lines, len(labels) > len(set(labels)))


def _register(database: Database, results: Path) -> Mapping[str, Listed]:
    rules = rules_digest()
    listed, new = find_new(database, results, rules, judged=False)
    rows = _heads(new)
    while batch := list(islice(rows, _BATCH)):
        put_in_place(database, rules, batch)
    return listed


def _heads(records: Sequence[tuple[str, Listed]]) -> Iterator[RecordRows]:
    for name, listed in records:
        record = {"path": name, **asdict(listed.stamp), "judged": False, "broken": ""}
        try:
            head = read_head(read_file(listed.path, MOST_RECORD_BYTES))
        except (OSError, RecordError):
            head = None
        yield RecordRows(record) if head is None else _rows(record, head)


def _rows(record: dict[str, object], head: Head) -> RecordRows:
    run = {
        "run": head.id,
        "sides": len(head.builds),
        "scenario": head.scenario,
        "version": head.version,
        "digest": head.digest,
        "testbed": head.testbed,
        "started_at": head.started_at,
        **dict.fromkeys(
            ("settings", "machine", "role", "revision", "source", "sha256", "doubts", "trouble"), ""
        ),
    }
    sides = (
        {"side": side, "build": build.label, "line": name_line(build), "failures": 0}
        | dict.fromkeys(("release", "accelerator", "fixes"), "")
        for side, build in enumerate(head.builds)
    )
    return RecordRows(record, lines_in(head.builds), run, tuple(sides))
