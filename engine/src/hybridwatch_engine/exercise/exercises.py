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
from hybridwatch_engine.exercise.speculation import (
    anchors_of_step,
    blocks_of_convolution,
    pages_of_request,
    rows_of_graph,
    width_of_graph_slots,
)
from hybridwatch_engine.exercise.state_update import states_behind_tokens
from hybridwatch_engine.exercise.steps import (
    anchors_without_drafts,
    states_at_block_ends,
    told_without_drafts,
)
from hybridwatch_engine.exercise.trial import Exercise

_STALE_ROWS: Final = [[10, 20], [11, 21], [12, 22]]
_NO_ROWS: Final = [[0, 0]] * 3
_BLOCKS: Final = [2, 3, 0]
_OWN_STATES: Final = [0, 1, 2, 3, 4]

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
    "all-cache-spec-decode-slots": Exercise(
        width_of_graph_slots,
        with_fix={"columns": 18, "build": "done"},
        without_fix={"columns": 16, "build": "RuntimeError"},
    ),
    # Nine tokens are three requests: the graph's eight rows are five too many.
    "all-cache-spec-decode-graph-rows": Exercise(
        rows_of_graph,
        with_fix={"requests": 3, "scheduled": _BLOCKS, "computed": _BLOCKS},
        without_fix={
            "requests": 3,
            "scheduled": [*_BLOCKS, *[-1] * 5],
            "computed": [*_BLOCKS, *[-1] * 5],
        },
    ),
    "all-cache-spec-decode-anchor": Exercise(
        anchors_of_step,
        with_fix={"anchors": [5, -1, -1]},
        without_fix={"anchors": [-1, -1, -1]},
    ),
    "all-cache-spec-decode-memory": Exercise(
        pages_of_request,
        with_fix={"pages": 18, "row": 18},
        without_fix={"pages": 16, "row": 18},
    ),
    "prev-step-anchor": Exercise(
        anchors_without_drafts,
        with_fix={
            "remembered": {"short": 2, "full": 3},
            "accepted": [2, 1],
            "anchors": [2, 3],
        },
        without_fix={"remembered": {"full": 3}, "accepted": None, "anchors": None},
    ),
    "accepted-counts": Exercise(
        told_without_drafts,
        with_fix={"accepted": [2, 1]},
        without_fix={"accepted": None},
    ),
    "conv-anchor": Exercise(
        blocks_of_convolution,
        with_fix={"read_from": [3, 3]},
        without_fix={"read_from": [2, 3]},
    ),
    # Both filled blocks have the state of column 3, and inputs from places 1 and 2 of where the
    # step began; the second request continues from its copy, as if one token had been accepted.
    "block-end-states": Exercise(
        states_at_block_ends,
        with_fix={
            "states": [[0, 3, 2, 3, 4], [0, 3, 2, 3, 4], _OWN_STATES, _OWN_STATES],
            "inputs": [[21, 22], [12, 13], [10, 11], [10, 11]],
            "accepted": [3, 1, 2, 3],
            "accepted_on_host": [3, 1, 2, 3],
        },
        without_fix={
            "states": [_OWN_STATES] * 4,
            "inputs": [[10, 11]] * 4,
            "accepted": [3, 3, 2, 3],
            "accepted_on_host": [3, 3, 2, 3],
        },
    ),
    "cpu-speculative-states": Exercise(
        states_behind_tokens,
        with_fix={"states": [1.0, 2.0, 3.0], "outputs": [1.0, 2.0, 3.0]},
        without_fix={"states": [3.0, 2.0, 3.0], "outputs": [1.0, 2.0, 3.0]},
    ),
}
"""By fix; a fix made of parts is seen by its parts."""
