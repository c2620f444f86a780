"""What people did about alerts: each decision is one row that is added and never changed.

Writers take turns, and each names how many decisions it knew of: if there are more now, it is
refused, so that it does not overrule what it has not seen.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import Connection, Row, insert, inspect, select

from hybridwatch.analysis.alert_decisions import (
    UNDECIDED,
    Decision,
    DecisionEntry,
    Decisions,
    Seen,
    SeenPart,
    TriageAction,
    TriageConflict,
    check_other,
    checked_name,
)
from hybridwatch.analysis.alert_timeline import AlertQuestion, AlertSubject
from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.connection import (
    Database,
    UrlError,
    check_known,
    file_url,
    find_database_url,
    migrate,
    parsed,
    reading_kept,
)
from hybridwatch.database.schema import ACT
from hybridwatch.errors import TriageError
from hybridwatch.records.identity import derived_line

TRIAGE_VARIABLE: Final = "HYBRIDWATCH_TRIAGE"
"""Environment variable that names a database for decisions alone, as a URL."""
EARLIER_FILE: Final = "triage.sqlite"
"""Where decisions were kept before there was one database; the first new one takes them over."""


class Triage:
    """The decisions of one team, after those of an ``earlier`` file. Threads may share it."""

    def __init__(self, database: Database, earlier: Path | None = None) -> None:
        self.name = database.name
        self._database = database
        self._earlier = earlier

    def decisions(self) -> Mapping[str, Decisions]:
        """Read what people did, by the key of the alert. Makes no database where there is none.

        What was done when every metric had an alert of its own stands under the metric's old key,
        and when every night's build had one under its line's, as ``earlier``.
        """
        with reading_kept(self._database, ACT) as connection:
            if connection is not None and self._has_acts(connection):
                return _decided(_rows(connection), self.name)
        return _decided(self._read_earlier(), self.name)

    def decide(self, alert: Alert, decision: Decision, who: str, now: datetime) -> Decisions:
        """Keep what a person did about an alert as they saw it; gives all decided about it.

        If another person acted on it since (``TriageConflict``) nothing was kept.
        """
        checked_name("who", who)
        key = alert.subject.key
        check_other(decision, key)
        with self._database.writing() as connection:
            is_first = not self._has_acts(connection)
            migrate(connection)
            if is_first and (earlier := self._read_earlier()):
                connection.execute(insert(ACT), [row._asdict() for row in earlier])
            known = _decided(_rows(connection, key), self.name).get(key, UNDECIDED)
            seen = alert.decisions.version
            if known.version != seen:
                raise TriageConflict(known, seen)
            entry = DecisionEntry(seen + 1, now.astimezone(UTC), who, decision, alert.seen)
            connection.execute(insert(ACT), [_row(alert, entry)])
        return Decisions((*known.entries, entry))

    def decide_all(
        self, alerts: Iterable[Alert], decision: Decision, who: str, now: datetime
    ) -> Mapping[str, TriageError]:
        """Keep one answer to many alerts, as seen; gives by key why nothing was kept of some."""
        checked_name("who", who)
        failed: dict[str, TriageError] = {}
        for alert in alerts:
            try:
                self.decide(alert, decision, who, now)
            except TriageError as error:
                failed[alert.subject.key] = error
        return failed

    def close(self) -> None:
        """Let go of connections; the next call makes new ones."""
        self._database.close()

    def _has_acts(self, connection: Connection) -> bool:
        """Whether anything was decided, in tables that we know: empty ones hide nothing before."""
        check_known(connection, self.name)
        if not inspect(connection).has_table(ACT.name):
            return False
        return connection.scalar(select(ACT.c.number).limit(1)) is not None

    def _read_earlier(self) -> Sequence[Row[Any]]:
        if self._earlier is None or not self._earlier.exists():
            return ()
        with Database(file_url(self._earlier), TriageError).reading() as connection:
            check_known(connection, str(self._earlier))
            return _rows(connection) if inspect(connection).has_table(ACT.name) else ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_triage(results: Path) -> Triage:
    """Open the decisions that the variable names, else those of a results folder; makes nothing."""
    try:
        if given := os.environ.get(TRIAGE_VARIABLE, ""):
            return Triage(Database(parsed(given, TRIAGE_VARIABLE), TriageError))
        return Triage(Database(find_database_url(results), TriageError), results / EARLIER_FILE)
    except UrlError as error:
        raise TriageError(str(error)) from None


def _rows(connection: Connection, key: str = "") -> Sequence[Row[Any]]:
    wanted = select(ACT).order_by(ACT.c.alert, ACT.c.number)
    return connection.execute(wanted.where(ACT.c.alert == key) if key else wanted).fetchall()


def _decided(rows: Sequence[Row[Any]], name: str) -> dict[str, Decisions]:
    entries: defaultdict[str, list[DecisionEntry]] = defaultdict(list)
    for row in rows:
        try:
            entries[row.alert].append(_entry(row))
        except (TypeError, ValueError) as error:
            raise TriageError(
                f"{name}: decision {row.number} on alert {row.alert}: {error}"
            ) from error
    kept = {alert: Decisions(tuple(made)) for alert, made in entries.items()}
    return kept | _by_line(rows, kept)


def _by_line(rows: Sequence[Row[Any]], kept: Mapping[str, Decisions]) -> dict[str, Decisions]:
    abouts = {row.alert: row.about for row in rows}
    earlier: defaultdict[str, list[DecisionEntry]] = defaultdict(list)
    for alert, about in abouts.items():
        key = _key_by_line(json.loads(about))
        if key != alert:
            earlier[key] += kept[alert].entries
    return {
        key: replace(
            kept.get(key, UNDECIDED), earlier=tuple(sorted(made, key=lambda entry: entry.at))
        )
        for key, made in earlier.items()
    }


def _key_by_line(about: Mapping[str, str]) -> str:
    """Give the key that an alert, or a metric's of before, has by the lines of its builds."""
    baseline, contender = (derived_line(about[side]) for side in ("baseline", "contender"))
    if "area" in about:
        area = Area(about["area"])
        return AlertSubject(about["scenario"], area, baseline, contender, about["testbed"]).key
    metric = about["scenario"], about["metric"], about["statistic"]
    return AlertQuestion(*metric, baseline, contender, about["testbed"]).key


def _row(alert: Alert, entry: DecisionEntry) -> dict[str, Any]:
    about = {**alert.subject.facts(), "parts": [asdict(part) for part in entry.seen.parts]}
    return {
        "alert": alert.subject.key,
        "number": entry.number,
        "about": json.dumps(about, sort_keys=True),
        "at": entry.at,
        "who": entry.who,
        "deed": entry.decision.action.value,
        "text": entry.decision.text,
        "until": entry.decision.until,
        "seen_run": entry.seen.run_id,
        "seen_started_at": entry.seen.started_at,
        "seen_verdict": entry.seen.verdict.value,
        "seen_effect": entry.seen.effect,
        "seen_rank": entry.seen.rank.value,
    }


def _entry(row: Row[Any]) -> DecisionEntry:
    # What was bad is unknown for a decision of version 1, which is about one metric.
    parts: Sequence[dict[str, Any]] = json.loads(row.about).get("parts", ())
    seen = Seen(
        run_id=row.seen_run,
        started_at=row.seen_started_at,
        verdict=Verdict(row.seen_verdict),
        effect=row.seen_effect,
        rank=Action(row.seen_rank),
        parts=tuple(SeenPart(**part) for part in parts),
    )
    return DecisionEntry(
        row.number, row.at, row.who, Decision(TriageAction(row.deed), row.text, row.until), seen
    )
