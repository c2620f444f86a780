"""Runs ``hybridwatch check`` as its users do, against the live engine of a scenario.

The engine has our plugin for the faults alone; what checks it knows only its address.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from hybridwatch.analysis.control import ENGINE_DIED
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.scenarios.fixes import Mutant, list_parts
from hybridwatch_lab.mutants.faulty_engine import SIDE, FaultyEngine
from hybridwatch_lab.mutants.judging import SURVIVAL, TIMEOUT, Kill, find_state
from hybridwatch_lab.mutants.table import HEALTHY, MutantState
from hybridwatch_lab.server_check.table import TAKEN_OUT, CheckCell

_HELD, _BROKE, _UNREACHABLE = 0, 1, 2
_LONGEST_DETAIL: Final = 400


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check said of a server."""

    kill: Kill
    requests: int
    whole: dict[str, Any]


def read_report(status: int, output: str, complaint: str = "") -> CheckReport:
    """Read what a check printed; one that broke off, or contradicts itself, is an error."""
    if status == _UNREACHABLE:
        return CheckReport(Kill((ENGINE_DIED,), complaint.strip()[-_LONGEST_DETAIL:]), 0, {})
    try:
        said = json.loads(output)
        broke, requests = tuple(said["broke"]), int(said["requests"])
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            f"hybridwatch check: expected a report as JSON, found status {status}: "
            f"{complaint.strip()[-_LONGEST_DETAIL:]}"
        ) from error
    if (status == _BROKE) is not bool(broke):
        raise MeasurementError(f"hybridwatch check: status {status}, and broke: {list(broke)}")
    detail = "; ".join(_breaks(said))[:_LONGEST_DETAIL]
    return CheckReport(Kill(broke, detail) if broke else SURVIVAL, requests, said)


def _breaks(said: dict[str, Any]) -> Iterator[str]:
    for relation in said["relations"]:
        for one in relation["breaks"][:1]:
            yield f"{relation['name']}: {one['said']}"


def run_check(url: str, minutes: float) -> CheckReport:
    """Check a server by the command line."""
    options = ("--minutes", f"{minutes:g}", "--json", "--no-record")
    command = ("-m", "hybridwatch", "check", url, *options)
    limit_s = 60 + 4 * 60 * minutes
    try:
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return CheckReport(Kill((TIMEOUT,), f"the check took over {limit_s:.0f} s"), 0, {})
    return read_report(done.returncode, done.stdout, done.stderr)


@dataclass(slots=True)
class CheckRunner:
    """Checks the engine of one scenario, healthy and with faults, while it lives."""

    engine: FaultyEngine
    minutes: float

    def check_healthy(self) -> CheckCell:
        """Check the engine as it is; what ran before stays in its cache, as at a user's."""
        begin = time.monotonic()
        report = self._check()
        if report.kill:
            self.engine.say(json.dumps(report.whole))
        state = MutantState.KILLED if report.kill else MutantState.SURVIVED
        return self._cell(HEALTHY, "", report, begin, state, None)

    def check_without(self, fix: str) -> CheckCell:
        """Check the engine with a fix taken out."""
        control = self.engine.pool.make_ready(SIDE).control
        begin = time.monotonic()
        parts = list_parts(fix)
        control.switch(dict.fromkeys(parts, False))
        report = self._check()
        if ENGINE_DIED not in report.kill.metrics:
            control.switch(dict.fromkeys(parts, True))
        self.engine.heal(fix)
        state = MutantState.KILLED if report.kill else MutantState.SURVIVED
        return self._cell(f"{TAKEN_OUT}{fix}", "", report, begin, state, None)

    def check_mutant(self, name: str, mutant: Mutant) -> CheckCell:
        """Check the engine with a mutant on."""
        control = self.engine.pool.make_ready(SIDE).control
        begin = time.monotonic()
        control.mutate(name)
        report = self._check()
        counts = self.engine.take_back()
        reached, changed = (counts["reached"], counts["changed"]) if counts else (None, None)
        state = find_state(mutant, report.kill, reached, changed)
        if changed != 0:
            self.engine.heal(name)
        return self._cell(name, mutant.digest, report, begin, state, counts)

    def _check(self) -> CheckReport:
        try:
            report = run_check(self.engine.live().server.url, self.minutes)
        except EngineError as error:
            return CheckReport(Kill((ENGINE_DIED,), str(error)), 0, {})
        if report.kill.metrics == (ENGINE_DIED,) and self.engine.pool.is_alive(SIDE):
            raise MeasurementError(
                f"hybridwatch check: the engine answers, and it says: {report.kill.detail}"
            )
        return report

    def _cell(
        self,
        name: str,
        digest: str,
        report: CheckReport,
        begin: float,
        state: MutantState,
        counts: dict[str, int] | None,
    ) -> CheckCell:
        run = self.engine.run
        return CheckCell(
            mutant=name,
            scenario=self.engine.scenario.id,
            build=self.engine.build.engine_name,
            mutant_digest=digest,
            scenario_digest=run.scenario.digest,
            state=state,
            metrics=report.kill.metrics,
            detail=report.kill.detail,
            seconds=round(time.monotonic() - begin, 1),
            reached=None if counts is None else counts["reached"],
            changed=None if counts is None else counts["changed"],
            trials=1,
            measured_at=datetime.now(UTC).replace(microsecond=0),
            release=run.builds[SIDE].release,
            revision=run.harness.revision,
            minutes=self.minutes,
            requests=report.requests,
        )
