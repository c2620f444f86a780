"""What each fix does, as something to see."""

from typing import Final

from hybridwatch_engine.exercise.builder import split_of_extends
from hybridwatch_engine.exercise.drafter import blocks_of_draft_model
from hybridwatch_engine.exercise.lengths import longest_of_draft, longest_of_target
from hybridwatch_engine.exercise.rows import rows_after_leaving, rows_after_moving
from hybridwatch_engine.exercise.runner import (
    flags_in_dummy_runs,
    flags_of_padded_rows,
    graphs_of_batches,
)
from hybridwatch_engine.exercise.trial import Exercise

_STALE_ROWS: Final = [[10, 20], [11, 21], [12, 22]]
_NO_ROWS: Final = [[0, 0]] * 3

EXERCISES: Final[dict[str, Exercise]] = {
    "padded-rows-prefilling": Exercise(
        flags_of_padded_rows,
        with_fix={"flags": [False, True, False, False, False]},
        without_fix={"flags": [False, True, False, True, True]},
    ),
    "single-token-extend": Exercise(
        split_of_extends,
        with_fix={"decodes": 2, "prefills": 1, "graph_slots": [3, 4]},
        without_fix={"decodes": 1, "prefills": 2, "graph_slots": [-1, -1]},
    ),
    "draft-max-seq-len-target": Exercise(
        longest_of_target,
        with_fix={"step": 50, "capture": 4096},
        without_fix={"step": 4096, "capture": 4096},
    ),
    "draft-max-seq-len-draft": Exercise(
        longest_of_draft,
        with_fix={"short": 53, "at_the_end": 4096},
        without_fix={"short": 4096, "at_the_end": 4096},
    ),
    # The last row was written after the last commit: who sees it on the device has committed.
    "stale-block-table-finished-rows": Exercise(
        rows_after_leaving,
        with_fix={"host": [*_NO_ROWS, [9, 0]], "device": [*_NO_ROWS, [9, 0]]},
        without_fix={"host": [*_STALE_ROWS, [9, 0]], "device": [*_STALE_ROWS, [0, 0]]},
    ),
    "stale-block-table-vacated-rows": Exercise(
        rows_after_moving,
        with_fix={"host": [[12, 22], [11, 21], [0, 0]]},
        without_fix={"host": [[12, 22], [11, 21], [12, 22]]},
    ),
    "dummy-run-padding": Exercise(
        flags_in_dummy_runs,
        with_fix={"replay": [False] * 4, "capture": [False, True, False, True]},
        without_fix={
            "replay": [False, True, False, True],
            "capture": [False, True, False, True],
        },
    ),
    "one-token-prompt": Exercise(
        graphs_of_batches,
        with_fix={"first_token": "PIECEWISE", "decodes": "FULL"},
        without_fix={"first_token": "FULL", "decodes": "FULL"},
    ),
    # Without it the draft writes into the blocks of the first group.
    "draft-model-cache-group": Exercise(
        blocks_of_draft_model,
        with_fix={"blocks": [[200, 201], [202, 203]], "slots": [2000, 2001]},
        without_fix={"blocks": [[100, 101], [102, 103]], "slots": [1000, 1001]},
    ),
}
"""By fix; a fix made of parts is seen by its parts."""
