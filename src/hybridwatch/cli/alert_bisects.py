"""Searches what brought the confirmed alerts of a night, as ``[bisect]`` of the policy says."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import AlertBisect
from hybridwatch.cli.bisect import BisectOptions, search
from hybridwatch.database.decisions import TRIAGE_VARIABLE
from hybridwatch.database.queries import open_index
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.orchestration.bisect.alert_answers import (
    answer_line,
    find_answer,
    is_final,
    keep_answer,
)
from hybridwatch.orchestration.bisect.journal import SearchAnswer
from hybridwatch.orchestration.fleet.driver import PROBES
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.screens.screen import ScreenSource, alerts_here
from hybridwatch.pages.screens.suspects import find_search, list_suspects
from hybridwatch.reports.alert_text import is_control

_MINUTE: Final = 60.0
_LONGEST: Final = 1000


def bisect_alerts(
    findings: ChangeReview,
    seconds: float,
    say: Callable[[str], None],
    results: Path,
    clock: Callable[[], float] = time.monotonic,
) -> ChangeReview:
    """Search each confirmed alert of the night once, the newest first, and add the answers.

    No measurement begins after ``seconds``, nor after the minutes of the policy.
    """
    wanted = findings.policy.bisect
    if wanted is None or not findings.reports:
        return findings
    until = clock() + min(seconds, wanted.minutes * _MINUTE)
    checkout = replace(checkout_here(), policy=findings.policy)
    triage = os.environ.get(TRIAGE_VARIABLE, "")
    index, now = open_index(results), datetime.now(UTC)
    source = ScreenSource(results, index, now, triage, checkout=lambda: checkout)
    here = {report.contender.testbed.id for report in findings.reports}
    searched: defaultdict[str, list[str]] = defaultdict(list)
    begun = min(report.contender.started_at or now for report in findings.reports)
    for group, members in _confirmed(alerts_here(source), begun):
        found = find_answer(results, group.members)
        left = until - clock()
        if found is None or (left > 0 and not is_final(found)):
            alert = next((one for one in members if one.subject.testbed in here), members[0])
            found = _search(alert, source, wanted, here, left, say)
        line = answer_line(found)
        say(f"bisect {found.scenario}: {line}")
        for run in {one.bad.run_id for one in members}:
            searched[run].append(line)
    return replace(findings, searched=searched)


def _confirmed(
    groups: Sequence[AlertGroup], begun: datetime
) -> Iterator[tuple[AlertGroup, list[Alert]]]:
    """Yield the open alerts, the newest first, with the members that are bad since ``begun``."""
    for group in sorted(groups, key=lambda group: group.opened_by.place, reverse=True):
        members = [
            one
            for one in group.members
            if one.status is Status.OPEN
            and one.is_confirmed
            and not is_control(one)
            and one.bad.started_at >= begun
        ]
        if members:
            yield group, members


def _search(
    alert: Alert,
    source: ScreenSource,
    wanted: AlertBisect,
    here: set[str],
    seconds: float,
    say: Callable[[str], None],
) -> SearchAnswer:
    """Search one alert, and keep the answer, or why there is none."""
    scenario = alert.subject.scenario
    try:
        options = _options(alert, source, wanted, here, seconds)
        document = search(scenario, options, source.results, say, store=source.results / PROBES)
        return keep_answer(source.results, alert, document)
    except (HybridwatchError, OSError) as error:
        nothing = dict.fromkeys(("answer", "confirmation", "repeat"))
        facts = {"schema_version": 1, "scenario": scenario, "confirmed": False, **nothing}
        why_not = " ".join(str(error).split())[:_LONGEST]
        return keep_answer(source.results, alert, {**facts, "why_not": why_not})


def _options(
    alert: Alert, source: ScreenSource, wanted: AlertBisect, here: set[str], seconds: float
) -> BisectOptions:
    """Say what to search; a ``BuildError`` says why nothing can be."""
    if alert.subject.testbed not in here:
        raise BuildError(
            f"it was measured on {alert.subject.testbed}, and this is {', '.join(sorted(here))}"
        )
    suspects = list_suspects(alert, source)
    if suspects is None:
        raise BuildError("it is not known between which two runs it came")
    if (needed := find_search(alert, suspects)) is None:
        raise BuildError(f"both ends are {suspects.culprits.bad.build.label}: nothing is between")
    good, bad, metric, in_clone = needed
    if in_clone and not wanted.repo:
        raise BuildError(
            f"commits lie between {good} and {bad}: expected a clone of vLLM as repo in [bisect] "
            "of the policy"
        )
    if seconds <= 0:
        raise BuildError("the time for searches was up; the next night goes on")
    repo = Path(wanted.repo).expanduser() if wanted.repo else None
    return BisectOptions(good, bad, metric, seconds / _MINUTE, repo, wanted.base)
