"""How many trials and documents the command line asks for instead of a scenario's own."""

import click

from hybridwatch.scenario.scenario import Scenario

takes_documents = click.option(
    "--documents", type=click.IntRange(1), help="Number of documents of each accuracy task."
)
"""Gives a verb the argument ``documents``; ``None`` leaves the scenario's count."""


def with_counts(
    scenario: Scenario,
    *,
    contract: int | None = None,
    timed: int | None = None,
    documents: int | None = None,
) -> Scenario:
    """Apply the counts; the scenario stays the same one (``scenario.digest``).

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
