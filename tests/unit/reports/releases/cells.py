"""Cells of a card of releases, of few words."""

from pathlib import Path
from typing import Any

from hybridwatch.reports.releases import CellState, ReleaseCell
from hybridwatch.scenarios.load import digest, find
from tests.builders import STARTED

SCENARIOS = find(Path(__file__).parents[4] / "scenarios", ["smoke"])
DIGESTS = {one.id: digest(one) for one in SCENARIOS}
PADDED = "smoke/padded-graph-rows"
TOKENS = "contract.wrong_tokens"
DYING = "KeyError: 'slots'"


def a_cell(release: str = "0.32.0", runner: str = "v2", *wrong: str, **changes: Any) -> ReleaseCell:
    """What became of a smoke scenario: clean, or each metric that is named 2 in place of 0."""
    scenario = changes.get("scenario", PADDED)
    facts: dict[str, Any] = {
        "scenario": scenario,
        "release": release,
        "runner": runner,
        "scenario_digest": DIGESTS[scenario],
        "state": CellState.BROKEN if wrong else CellState.CLEAN,
        "broken": dict.fromkeys(wrong, 2.0),
        "trials": 1,
        "measured_at": STARTED,
    }
    return ReleaseCell(**{**facts, **changes})
