"""The answers of searches that alerts started, a file for each run that confirmed one.

A file has what ``bisect --json`` prints, so ``hybridwatch suspects`` reads it, or why nothing was
searched.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.alerts import Alert
from hybridwatch.errors import RecordError
from hybridwatch.orchestration.bisect.journal import FOLDER, SearchAnswer, Suspect, read_answer
from hybridwatch.system.files import make_folder, named_errors, put

ANSWERS: Final = Path(FOLDER) / "alerts"
"""Below the results folder."""
_DIGITS: Final = 10
"""Of a commit."""


def keep_answer(results: Path, alert: Alert, document: Mapping[str, Any]) -> SearchAnswer:
    """Store the answer to an alert, and read it again."""
    path = results / ANSWERS / f"{_name(alert, alert.bad.run_id)}.json"
    with named_errors(path):
        make_folder(path.parent)
        put(path, f"{json.dumps(document, indent=2)}\n".encode())
    return read_answer(path)


def find_answer(results: Path, alerts: Iterable[Alert]) -> SearchAnswer | None:
    """Find the newest answer to alerts of one cause since they opened; a broken file is none."""
    if not (results / ANSWERS).is_dir():
        return None
    found = [
        (run.place, results / ANSWERS / f"{_name(alert, run.run_id)}.json")
        for alert in alerts
        for run in alert.run_verdicts
        if run.cause is not None and run.place >= alert.opened_by.place
    ]
    return next(filter(None, (_read(path) for _, path in sorted(found, reverse=True))), None)


def read_answers(results: Path, runs: Iterable[str]) -> dict[str, list[str]]:
    """Give the lines of answers by the ids of the runs that confirmed the alerts."""
    return {
        run: [answer_line(found) for path in paths if (found := _read(path)) is not None]
        for run in runs
        if (paths := sorted((results / ANSWERS).glob(f"{run}-*.json")))
    }


def is_final(found: SearchAnswer) -> bool:
    """Whether another search of the same range would say the same: its time was not up."""
    return not found.why_not and (found.answer is None or found.confirmation is not None)


def answer_line(found: SearchAnswer) -> str:
    """Say in one plain line what changed a metric, or why that is not known."""
    answer, sure = found.answer, found.confirmation
    if found.why_not:
        return f"not searched: {found.why_not}"
    if answer is None:
        return "the ends did not differ when they were measured again"
    if sure is None:
        seen = "; the time was up, and the next night goes on"
    else:
        seen = f"; measured again, {'confirmed' if sure.holds else 'NOT confirmed'}: {sure.seen}"
    if answer.culprit is not None:
        return f"{answer.metric} changed with {_named(answer.culprit)}{seen}"
    ends = " and ".join(_named(Suspect(name=end)) for end in (answer.good, answer.bad))
    return f"{answer.metric} changed between {ends}, {len(answer.suspects)} left{seen}"


def _named(suspect: Suspect) -> str:
    name = suspect.name[:_DIGITS] if suspect.is_commit else suspect.name
    return f"{name} {suspect.title}".rstrip()


def _name(alert: Alert, run: str) -> str:
    return f"{run}-{alert.subject.area.value}"


def _read(path: Path) -> SearchAnswer | None:
    with suppress(RecordError):
        return read_answer(path)
    return None
