"""The records of one call of ``run``, noted as they come: a stopped call can be resumed.

Each call has a file in ``unfinished/`` of the results folder, named after what was asked, with a
line for each record. It goes when all is measured; a process that is stopped or killed leaves it.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hybridwatch.cli.outcome import RunOutcome, judged
from hybridwatch.measurement.session import is_stopped
from hybridwatch.records.run import Run
from hybridwatch.records.store import read_run, write_run
from hybridwatch.scenarios.scenario import Scenario

UNFINISHED: Final = "unfinished"
_DIGITS: Final = 12


class RunRecords:
    """Stores what is measured.

    Args:
        results: Folder that gets the records.
        asked: Everything that makes two calls the same, as plain JSON.
        resume: Whether an earlier call that did not come to its end is resumed.

    Attributes:
        outcomes: Of the runs that are stored, in the order in which they came.
    """

    def __init__(self, results: Path, asked: Any, *, resume: bool) -> None:
        self.outcomes: list[RunOutcome] = []
        self._results = results
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        self._file = results / UNFINISHED / f"{digest[:_DIGITS]}.txt"
        if not resume:
            self.end()
        self._earlier = {run.scenario.id: (path, run) for path, run in self._read()}

    def take_whole(self, scenarios: Sequence[Scenario]) -> list[Scenario]:
        """Take in what an earlier call has finished, and return the scenarios that are left."""
        left = []
        for scenario in scenarios:
            path, run = self._earlier.get(scenario.id, (None, None))
            if path is None or run is None or is_stopped(run):
                left.append(scenario)
            else:
                self.outcomes.append(judged(scenario, run, path, self._results))
        return left

    def stopped(self, scenario: Scenario) -> Run | None:
        """Give the run of a scenario that was stopped before it was whole."""
        _, run = self._earlier.get(scenario.id, (None, None))
        return run

    def keep(self, scenario: Scenario, run: Run, *, noted: bool = True) -> RunOutcome:
        """Store a run, and the verdict between its two sides if it has two.

        Args:
            scenario: What was measured.
            run: The run.
            noted: Whether another call goes on after it; not after what was added to it.

        Raises:
            RecordError: It cannot be stored.
        """
        path = write_run(self._results, run)
        if noted:
            self._file.parent.mkdir(exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{path.relative_to(self._results)}\n")
        self.outcomes.append(judged(scenario, run, path, self._results))
        return self.outcomes[-1]

    def end(self) -> None:
        """Forget the call: nothing of it is left to be measured."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> list[tuple[Path, Run]]:
        try:
            names = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        there = [path for name in names if (path := self._results / name).is_file()]
        return [(path, read_run(path)) for path in there]
