"""One cell of the card of releases: what the contracts of a scenario show on a release's runner."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import ConfigDict

from hybridwatch.records.store.files import JournalEntry

FAILED_TRIAL: Final = "failed_trial"
"""Stands where a metric stands, for a trial that gave no measurement."""


class CellState(StrEnum):
    """What became of a scenario."""

    CLEAN = "clean"
    BROKEN = "broken"
    """A value is not what is expected of a healthy engine."""
    FAILED = "fails"
    """The engine did not come up, died, or a trial gave no measurement."""
    ABSENT = "not there"
    """The scenario does not apply."""


class ReleaseCell(JournalEntry):
    """What became of a scenario on a release's model runner, as released.

    Attributes:
        scenario: Id.
        release: Of vLLM.
        runner: Model runner, ``v1`` or ``v2``.
        scenario_digest: Of the work that the engine got.
        state: What became of it.
        broken: Metric to the worst value, of those that are not as expected; ``None`` where there
            is no value.
        detail: First cause of a failure, or why it does not apply, in one line.
        trials: Contract trials that were made.
        measured_at: UTC.
        revision: Commit of hybridwatch, None outside a checkout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    release: str
    runner: str
    scenario_digest: str
    state: CellState
    broken: Mapping[str, float | None] = {}
    detail: str = ""
    trials: int = 0
    measured_at: datetime
    revision: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Which cell of the card it is."""
        return self.scenario, self.release, self.runner

    @property
    def faults(self) -> tuple[str, ...]:
        """The metrics that are wrong, each of which wants a reason."""
        return (FAILED_TRIAL,) if self.state is CellState.FAILED else tuple(sorted(self.broken))


def cells_file(results: Path) -> Path:
    """Where the cells are kept."""
    return results / "releases" / "cells.jsonl"
