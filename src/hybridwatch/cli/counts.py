"""How many trials and documents the command line asks for instead of a scenario's own."""

import math
from typing import Final

import click

from hybridwatch.records.run import Phase
from hybridwatch.scenarios.scenario import Scenario

takes_documents = click.option(
    "--documents", type=click.IntRange(1), help="Number of documents of each accuracy task."
)
"""Gives a verb the argument ``documents``; ``None`` leaves the scenario's count."""


BRIEF_TRIALS: Final = {"contract": 1, "performance": 2, "host_sync": 1}
"""Trials of a side at the most. A broken rule shows in one; times get no verdict from two or from
three, only from seven."""

BRIEF_DOCUMENTS: Final = 60
"""Of all tasks together at the most, and no more than half of each. A smoke scenario whose bug
loses answers loses 8 of these or more: exact p below 0.01."""

BRIEF_WARM_UPS: Final[tuple[Phase, ...]] = ()
"""Timed phases with a warm-up: contracts and accuracy came before on the same engine, a host-sync
trial counts first and times afterwards."""


def briefly(scenario: Scenario) -> Scenario:
    """Leave as much of a scenario as it takes to see whether its bug is caught."""
    trials = {
        name: min(getattr(scenario.trials, name), most) for name, most in BRIEF_TRIALS.items()
    }
    changed: dict[str, object] = {"trials": scenario.trials.model_copy(update=trials)}
    if scenario.accuracy is not None:
        most = BRIEF_DOCUMENTS // len(scenario.accuracy.tasks)
        documents = min(math.ceil(scenario.accuracy.documents / 2), max(1, most))
        changed["accuracy"] = scenario.accuracy.model_copy(update={"documents": documents})
    return scenario.model_copy(update=changed)


def with_counts(
    scenario: Scenario,
    *,
    contract: int | None = None,
    timed: int | None = None,
    documents: int | None = None,
) -> Scenario:
    """Apply the counts; the scenario stays the same one (``scenarios.load.digest``).

    Args:
        scenario: The scenario; its own count stands wherever ``None`` is given.
        contract: Contract trials a side.
        timed: Trials of each timed phase and side.
        documents: Of each accuracy task.
    """
    trials = _given(contract=contract, performance=timed, host_sync=timed)
    changed: dict[str, object] = {"trials": scenario.trials.model_copy(update=trials)}
    if scenario.accuracy is not None:
        changed["accuracy"] = scenario.accuracy.model_copy(update=_given(documents=documents))
    return scenario.model_copy(update=changed)


def _given(**counts: int | None) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}
