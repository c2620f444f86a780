"""One cell of the kill table: what became of a mutant in a scenario."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import ConfigDict

from hybridwatch.records.store.files import JournalEntry

HEALTHY: Final = "(healthy)"
"""Stands where a mutant's name stands, for the engine without any."""


class MutantState(StrEnum):
    """What became of a mutant in a scenario."""

    KILLED = "killed"
    SURVIVED = "survived"
    """Its code ran and changed something, and nothing that the scenario measures shows it."""
    EQUIVALENT = "equivalent"
    """Its code ran and, by its own count, changed nothing; or its header says that it cannot."""
    NOT_REACHED = "not reached"
    """Its code never ran."""
    NOT_MEASURED = "not measured"
    """What could show it, answers or times, was not measured."""


class MutantCell(JournalEntry):
    """What became of a mutant in a scenario.

    Attributes:
        mutant: Its name, or ``HEALTHY``.
        scenario: Id.
        build: Label of the build.
        mutant_digest: Of what the mutant did; empty for the healthy engine.
        scenario_digest: Of the work that the engine got.
        state: What became of it.
        metrics: What killed it, the clearest first; ``engine_died``, ``timeout`` and
            ``failed_trial`` stand for a trial that gave no measurement.
        detail: How clearly, in one line.
        seconds: Of trials until it was killed, or until all were over.
        reached: How often its code ran; None when the engine took the count with it.
        changed: How often it changed something, likewise.
        trials: How many were made.
        measured_at: UTC.
        release: Of the engine.
        revision: Commit of hybridwatch, None outside a checkout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mutant: str
    scenario: str
    build: str
    mutant_digest: str
    scenario_digest: str
    state: MutantState
    metrics: tuple[str, ...] = ()
    detail: str = ""
    seconds: float = 0.0
    reached: int | None = None
    changed: int | None = None
    trials: int = 0
    measured_at: datetime
    release: str
    revision: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Which cell of which table it is; a later one of the same key takes its place."""
        return self.build, self.scenario, self.mutant
