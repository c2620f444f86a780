"""A night: measures what is expected, judges it, decides, and publishes; each step once.

``results/nights/<date>-<build>-<commit>/`` has a receipt for each scenario (its record's path), a
mark once asv has taken it over, ``gate.json``, ``report.md`` and ``log.txt``. The next run of the
same night goes on with what has no mark, and judges again.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from hybridwatch.analysis.change_review import Absent, ChangeReview
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.queries import open_index
from hybridwatch.errors import HybridwatchError
from hybridwatch.formats.write.asv_benchmarks import BUILD_VARIABLE
from hybridwatch.history.judge import both_sides, judge, save
from hybridwatch.history.newest_runs import read_grown
from hybridwatch.orchestration.nightly.profiling import profile_slower
from hybridwatch.orchestration.nightly.suite import (
    BASELINE_VARIABLE,
    CONSOLE_VARIABLE,
    LINE_VARIABLE,
    RECEIPT_VARIABLE,
    UNTIL_VARIABLE,
)
from hybridwatch.records.file_parts import safe_name
from hybridwatch.records.store import read_run
from hybridwatch.records.store.layout import RESULTS_VARIABLE
from hybridwatch.reports.jsonform import findings_to_json
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, render
from hybridwatch.system.files import claimed, put
from hybridwatch.system.guarded import GuardedProcess

NIGHTS: Final = "nights"
GATE: Final = "gate.json"
REPORT: Final = "report.md"
LOG: Final = "log.txt"

_PUBLISH_S: Final = 900.0
"""Seconds for publishing, also when no time is left: it is the end of every night."""
_ASV_DONE: Final = (0, 2)
"""asv's exit statuses once it has saved its results; 2 says that a benchmark failed."""

Say = Callable[[str], None]


class NightError(HybridwatchError):
    """A night cannot be held, or not to its end."""


@dataclass(frozen=True, slots=True)
class NightPlan:
    """What a night is to do.

    Attributes:
        baseline: Label of what ``build`` is measured in turn with; the same for an A/A night.
        commit: Under which asv keeps the numbers, 40 hexadecimal digits.
        folder: Where asv is called.
        seconds: After so long nothing more is measured.
        line: The line of builds of what is watched, if it is stated.
        second_look: Whether times that changed are measured again, if there is time.
        profile: Whether a run that got slower is sampled, if there is time.
        search: Adds what searches of alerts found to the findings, in the seconds that are left.
    """

    scenarios: Sequence[str]
    build: str
    baseline: str
    commit: str
    results: Path
    policy: Policy
    asv: Sequence[str]
    config: Path
    folder: Path
    seconds: float
    line: str | None = None
    second_look: bool = True
    profile: bool = False
    search: Callable[[ChangeReview, float, Say], ChangeReview] | None = None


def hold(plan: NightPlan, today: date, say: Say) -> tuple[Path, ChangeReview]:
    """Hold the night of a date in UTC, or what is left of it; gives its folder and findings."""
    deadline = time.monotonic() + plan.seconds
    nights = plan.results.resolve() / NIGHTS
    nights.mkdir(parents=True, exist_ok=True)
    with claimed(nights / ".lock") as is_ours:
        if not is_ours:
            raise NightError(f"{nights}: another night is running; wait until it ends")
        folder = tonight(nights, today, plan)
        folder.mkdir(exist_ok=True)
        night = _Night(plan, folder, deadline, partial(_log, say, folder / LOG))
        findings = night.judged(night.measured())
        put(folder / REPORT, render(findings, limit=SUMMARY_LIMIT).text.encode())
        document = findings_to_json(findings.gate, findings)
        put(folder / GATE, f"{json.dumps(document, indent=2, allow_nan=False)}\n".encode())
        night.publish()
        if plan.search is not None:
            findings = plan.search(findings, deadline - time.monotonic(), night.say)
            put(folder / REPORT, render(findings, limit=SUMMARY_LIMIT).text.encode())
    return folder, findings


def tonight(nights: Path, today: date, plan: NightPlan) -> Path:
    """Name the folder of the night: a new one, unless yesterday's was left without an end."""
    what = f"{safe_name(plan.build)}-{plan.commit[:8]}"
    yesterday = nights / f"{today - timedelta(days=1)}-{what}"
    current = nights / f"{today}-{what}"
    unfinished = yesterday.is_dir() and not (yesterday / GATE).exists()
    return yesterday if unfinished and not current.exists() else current


@dataclass(frozen=True, slots=True)
class _Night:
    plan: NightPlan
    folder: Path
    deadline: float
    say: Say

    def measured(self) -> dict[str, str]:
        """Measure every scenario that is not; gives the reasons of those that could not be."""
        lost = {}
        for number, scenario in enumerate(self.plan.scenarios, 1):
            place = f"[{number}/{len(self.plan.scenarios)}] {scenario}"
            there = self._mark(scenario).exists() and self._receipt(scenario).is_file()
            reason = "" if there else self._measure(scenario, place)
            self.say(f"{place}: lost: {reason}" if reason else f"{place}: measured")
            if reason:
                lost[scenario] = reason
        return lost

    def judged(self, lost: Mapping[str, str]) -> ChangeReview:
        """Judge and store what has a record; the rest is absent."""
        reports: list[Report] = []
        absent: list[Absent] = []
        for scenario in self.plan.scenarios:
            try:
                reports.append(self._report(scenario))
            except (HybridwatchError, OSError) as error:
                first = str(error).partition("\n")[0]
                absent.append(Absent(scenario, lost.get(scenario, first)))
        grown = read_grown(self.plan.results, reports)
        return ChangeReview(tuple(reports), tuple(absent), self.plan.policy, grown=grown)

    def publish(self) -> None:
        """Make the dashboard's index, so that it opens at once, and the site of all nights."""
        counts = open_index(self.plan.results).counts
        self.say(f"index: {plural(counts['records'], 'record')}")
        words = ["publish", "--config", str(self.plan.config.resolve())]
        status = self._asv(words, {}, _PUBLISH_S)
        if status != 0:
            how = "took too long" if status is None else f"ended with status {status}"
            raise NightError(f"asv publish {how}: {self.folder / LOG}")

    def _measure(self, scenario: str, place: str) -> str:
        left = self.deadline - time.monotonic()
        hours = f"the night has {self.plan.seconds / 3600:g} hours"
        if left <= 0:
            return f"not started before the time was up; {hours}"
        self.say(f"{place}: begins")
        status = self._asv(self._run_arguments(scenario), self._variables(scenario, left), left)
        if status is None:
            return f"not finished when the time was up; {hours}"
        if not self._receipt(scenario).is_file():
            return f"asv ended with status {status} and there is no record; see {LOG}"
        if status not in _ASV_DONE:
            return f"asv ended with status {status}, its results are not kept; see {LOG}"
        self._mark(scenario).touch()
        return ""

    def _run_arguments(self, scenario: str) -> list[str]:
        module = scenario.replace("/", ".").replace("-", "_")
        return [
            *("run", "--config", str(self.plan.config.resolve()), "--python=same"),
            *("--set-commit-hash", self.plan.commit, "--show-stderr"),
            *("--bench", rf"^{re.escape(module)}\."),
        ]

    def _variables(self, scenario: str, left: float) -> dict[str, str]:
        return {
            BUILD_VARIABLE: self.plan.build,
            BASELINE_VARIABLE: self.plan.baseline,
            **({LINE_VARIABLE: self.plan.line} if self.plan.line else {}),
            UNTIL_VARIABLE: str(time.time() + left if self.plan.second_look else 0.0),
            RESULTS_VARIABLE: str(self.plan.results.resolve()),
            RECEIPT_VARIABLE: str(self._receipt(scenario)),
            CONSOLE_VARIABLE: f"/proc/{os.getpid()}/fd/1",
        }

    def _asv(
        self, words: Sequence[str], variables: Mapping[str, str], seconds: float
    ) -> int | None:
        """Call asv; ``None`` when it was ended because the time was up."""
        log = self.folder / LOG
        process = GuardedProcess([*self.plan.asv, *words], log, variables, folder=self.plan.folder)
        try:
            return process.wait(seconds)
        except TimeoutError:
            return None
        finally:
            process.stop()

    def _report(self, scenario: str) -> Report:
        record = Path(self._receipt(scenario).read_text(encoding="utf-8"))
        run = read_run(record)
        sides = both_sides(record, run)
        # What is stored must be had again from the records alone: without a policy.
        save(self.plan.results, judge(*sides, self.plan.results))
        report = judge(*sides, self.plan.results, self.plan.policy).report
        if self.plan.profile and time.monotonic() < self.deadline:
            profile_slower(report, run, self.plan.results, self.say)
        return report

    def _receipt(self, scenario: str) -> Path:
        return self.folder / f"{safe_name(scenario)}.record"

    def _mark(self, scenario: str) -> Path:
        return self.folder / f"{safe_name(scenario)}.asv"


def _log(say: Say, log: Path, line: str) -> None:
    say(line)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
