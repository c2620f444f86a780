"""A store as of one moment: what counts, whether it is time for another one, plain rows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Select, bindparam, func, select

from hybridwatch.database.connection import Database
from hybridwatch.database.reading import unpacked
from hybridwatch.database.schema import RECORD, REPORT, SERIES
from hybridwatch.database.stamps import Listed, list_stamped
from hybridwatch.database.statements import CELL, every_level
from hybridwatch.database.writing import find_rules, made_anew, standing_rules
from hybridwatch.errors import DatabaseError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OF_POINT: Final = ("record", "build", "line", "release", "side", "value", "n")
# Made once: SQLAlchemy takes longer to put it together than SQLite to answer.
_LEVELS: Final = every_level(
    bindparam("last"), *(SERIES.c[name] == bindparam(name) for name in CELL)
)
_POINTS: Final = _LEVELS.with_only_columns(
    *(_LEVELS.selected_columns[name] for name in ("run", "started_at", *_OF_POINT))
)


class StoreMoment:
    """What a store held at one moment.

    What comes later is not seen, so that two answers fit together; what has vanished since is not
    seen either. ``is_current`` says whether it is time for another one.

    Args:
        database: Where it lies; also as an attribute, for questions that are none of these.
        listed: The records when it was opened.
        rules: By which they were judged.
    """

    def __init__(
        self, results: Path, database: Database, listed: Mapping[str, Listed], rules: str
    ) -> None:
        self.results = results
        self.kept = database.kept
        self.database = database
        self._listed = listed
        self._rules = rules
        with database.reading() as connection:
            self._last = connection.scalar(select(func.max(RECORD.c.id))) or 0

    def is_current(self) -> bool:
        """Whether the store still holds the same records; a listing, nothing is read."""
        try:
            with self.database.reading() as connection:
                if find_rules(connection) != self._rules:
                    return False
        except DatabaseError:
            return False  # the next one to open it says what is wrong
        return list_stamped(self.results) == self._listed

    @cached_property
    def stamp(self) -> str:
        """A digest that changes with the records, and with the rules by which they are judged."""
        lines = [f"{name} {astuple(one.stamp)}" for name, one in self._listed.items()]
        return hashlib.sha256("\n".join([self._rules, *lines]).encode()).hexdigest()

    def read_stamp(self, record: str) -> str:
        """Give a digest as ``stamp`` of one record, by its path below the results folder."""
        line = f"{self._rules} {record} {astuple(self._listed[record].stamp)}"
        return hashlib.sha256(line.encode()).hexdigest()

    def points(
        self, scenario: str, version: int, digest: str, testbed: str, metric: str, statistic: str
    ) -> Sequence[dict[str, Any]]:
        """Give the levels of one series in plain values, oldest first; none when there is none.

        Each is a side of a run: ``run_id``, ``record`` (its path below the results folder),
        ``started_at``, ``build``, ``line``, ``release``, ``side``, ``value`` (median of the trials,
        in base units) and ``n`` (how many).
        """
        cell = (scenario, int(version), digest, testbed, metric, statistic)
        given = {**dict(zip(CELL, cell, strict=True)), "last": self._last}
        return [_point(*row) for row in self._rows(_POINTS, given)]

    def report(self, record: str) -> bytes | None:
        """Give the JSON of a run's report, as ``compare --json`` prints it, in UTF-8.

        ``record`` is its path below the results folder. ``None`` where there is no report: the run
        has one build, or cannot be judged.
        """
        wanted = (
            select(REPORT.c.json)
            .join_from(REPORT, RECORD, RECORD.c.id == REPORT.c.record)
            .where(RECORD.c.path == record, RECORD.c.id <= self._last)
        )
        found = self._rows(wanted)
        return unpacked(found[0][0]) if found else None

    def _rows(
        self, wanted: Select[Any], given: Mapping[str, Any] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        with self.database.reading() as connection:
            if standing_rules(connection) != self._rules:
                raise DatabaseError(made_anew(self.database))
            # As the driver gives them: nothing here is another type in Python than in the database,
            # and rows of SQLAlchemy's own take three times as long.
            rows: Sequence[tuple[Any, ...]] = connection.execute(wanted, given).cursor.fetchall()
            return rows


def _point(run: str, microseconds: int, *others: Any) -> dict[str, Any]:
    """Name the values of a row of ``_POINTS``, as the driver gives it."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    named = dict(zip(_OF_POINT, others, strict=True))
    return {"run_id": run, "record": named.pop("record"), "started_at": moment.isoformat(), **named}
