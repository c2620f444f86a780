"""A list of stored runs as JSON, and the filter of which to show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hybridwatch.history.runs import RunRow
from hybridwatch.records.identity import name_line
from hybridwatch.records.role import name_role
from hybridwatch.records.run import Run
from hybridwatch.records.store import Stored

ALONE: Final = "alone"
"""Stands for a role where a run has one build only."""
_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; what is empty leaves all in.

    Attributes:
        scenario: Id or group.
        build: Label or line of a side's build, or its beginning.
        testbed: Id, or its beginning.
        role: What the run is for (``Role``), or ``alone``.
    """

    scenario: str = ""
    build: str = ""
    testbed: str = ""
    role: str = ""

    def fits(self, scenario: str, testbed: str, builds: Sequence[str], role: str) -> bool:
        """Whether a run of this scenario, testbed, builds (labels and lines) and role is wanted."""
        return (
            (self.scenario in {"", scenario} or scenario.startswith(f"{self.scenario}/"))
            and testbed.startswith(self.testbed)
            and any(label.startswith(self.build) for label in builds)
            and self.role in {"", role}
        )

    def fits_run(self, run: Run) -> bool:
        """Whether a run is wanted."""
        names = [name for build in run.builds for name in (build.label, name_line(build))]
        return self.fits(run.scenario.id, run.testbed.id, names, _role(run))


def records_to_json(
    shown: Sequence[Stored], broken: Mapping[str, str], *, more: bool
) -> dict[str, Any]:
    """Turn a list of runs into plain values; fields as in ``docs/json.md``."""
    return {
        "schema_version": _SCHEMA,
        "records": [record_to_json(stored) for stored in shown],
        "more": more,
        "unreadable": [{"record": path, "reason": why} for path, why in broken.items()],
    }


def record_to_json(stored: Stored) -> dict[str, Any]:
    """Turn one run of a list into plain values."""
    run = stored.run
    return {
        "run_id": run.id,
        "record": str(stored.path),
        "started_at": run.started_at.isoformat(),
        "scenario": run.scenario.id,
        "testbed": run.testbed.id,
        "builds": [build.label for build in run.builds],
        "lines": [name_line(build) for build in run.builds],
        "role": _role(run),
        "failed_trials": sum(trial.failure is not None for trial in run.trials),
        "sha256": run.sha256,
    }


def row_to_json(row: RunRow, role: str) -> dict[str, Any]:
    """Turn a run into the same values without reading its record, whose path stays relative."""
    return {
        "run_id": row.run,
        "record": row.record,
        "started_at": row.started_at.isoformat(),
        "scenario": row.scenario,
        "testbed": row.testbed,
        "builds": list(row.builds),
        "lines": list(row.lines),
        "role": role,
        "failed_trials": row.failures,
        "sha256": row.sha256 or None,
    }


def _role(run: Run) -> str:
    return name_role(*run.builds, known_bad=run.known_bad).value if len(run.builds) == 2 else ALONE
