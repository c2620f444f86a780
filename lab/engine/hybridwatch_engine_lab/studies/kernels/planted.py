"""Defects to plant, each of a kind that the kernels could have: the check must find them.

Each is a patch of a name in one of the kernels.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from hybridwatch_engine.cpu.kernels import (
    align,
    chunk_scan,
    convolution,
    selective_scan,
    state_update,
)
from hybridwatch_engine.patch import Patch


def _history_one_early(original: Callable[..., Any]) -> Callable[..., Any]:
    """The history of a row with accepted drafts begins one entry too early."""
    return lambda first, length, slot, entry=0: original(first, length, slot, max(0, entry - 1))


def _accepted_one_less(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state is read one accepted token too early."""

    def rows_of(sources: Any, targets: Any, accepted: Any, *rest: Any) -> Any:
        fewer = None if accepted is None else accepted - 1
        return original(sources, targets, fewer, *rest)

    return rows_of


def _last_state_everywhere(original: Callable[..., Any]) -> Callable[..., Any]:
    """Every slot of a row holds the state after its last token, as the compiled kernel has it."""

    def advance(states: Any, step: Any, rows: Any, null_block: int = 0) -> Any:
        output = original(states, step, rows, null_block)
        for row in rows:
            for slot in row.targets:
                if slot != null_block and row.targets[-1] != null_block:
                    states[slot] = states[row.targets[-1]]
        return output

    return advance


def _written_before_read(original: Callable[..., Any]) -> Callable[..., Any]:
    """Rows run one after the other, and a source is updated in its place first."""

    def advance(states: Any, step: Any, rows: Any, null_block: int = 0) -> Any:
        in_place = [replace(row, targets=[row.source] * row.length) for row in rows]
        original(states, step, in_place, null_block)
        return original(states, step, rows, null_block)

    return advance


def _block_end_one_late(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state of a block end is taken one token late."""

    def prefill(x: Any, state: Any, layer: Any, *rows: Any) -> Any:
        *places, blocks, null_block = rows
        late = replace(blocks, computed=blocks.computed - 1)
        return original(x, state, layer, *places, late, null_block)

    return prefill


def _chunk_of_the_row_before(original: Callable[..., Any]) -> Callable[..., Any]:
    """Chunks go on from the chunk before, whosever it is."""
    return lambda added, decay, rows, initial: original(added, decay, [0] * len(rows), initial)


def _accepted_drafts_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state of the first token moves, not that of the last accepted one."""
    return lambda state, request, source, target, _: original(state, request, source, target, 0)


def _state_kept_from_others(original: Callable[..., Any]) -> Callable[..., Any]:
    """A prompt begins with what is in its slot, whosever it was."""

    def scan(*operands: Any) -> None:
        *before, is_known, states, null_block = operands[:14]
        original(*before, is_known | True, states, null_block)

    return scan


DEFECTS: Final[Mapping[str, Callable[[], Patch]]] = {
    "history-one-early": lambda: Patch(convolution, "ConvolutionRow", _history_one_early),
    "block-end-one-late": lambda: Patch(convolution, "prefill", _block_end_one_late),
    "accepted-one-less": lambda: Patch(state_update, "rows_of", _accepted_one_less),
    "last-state-everywhere": lambda: Patch(state_update, "advance", _last_state_everywhere),
    "written-before-read": lambda: Patch(state_update, "advance", _written_before_read),
    "chunk-of-the-row-before": lambda: Patch(chunk_scan, "_pass_states", _chunk_of_the_row_before),
    "state-kept-from-others": lambda: Patch(selective_scan, "scan", _state_kept_from_others),
    "accepted-drafts-forgotten": lambda: Patch(
        align.CachedState, "move", _accepted_drafts_forgotten
    ),
}
"""What may be planted, by name."""
