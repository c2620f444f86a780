"""Cells and mutants of few words."""

from datetime import UTC, datetime
from typing import Any

from hybridwatch.scenarios.fixes import Mutant
from hybridwatch_lab.mutants.table import MutantCell, MutantState

MEASURED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_mutant(half: str = "first", **changes: Any) -> Mutant:
    """A mutant that could be; changes are keys of its table."""
    keys = {
        "half": half,
        "mechanism": "conv window",
        "target": ("v1.worker.block_table:BlockTable.move_row",),
        "by": "block_rows.not_swapped",
        "resembles": "made up",
        "what": "Moves nothing.",
    }
    return Mutant.model_validate({**keys, **changes})


def a_cell(mutant: str, state: MutantState = MutantState.KILLED, **changes: Any) -> MutantCell:
    """What became of a mutant in smoke/padded-graph-rows; changes are fields."""
    cell = MutantCell(
        mutant=mutant,
        scenario="smoke/padded-graph-rows",
        build="cpu-0.27.1",
        mutant_digest="m",
        scenario_digest="s",
        state=state,
        metrics=("contract.wrong_tokens",) if state is MutantState.KILLED else (),
        measured_at=MEASURED,
        release="0.27.1",
    )
    return cell.model_copy(update=changes)
