"""Mutants of the worker's block tables and of the rows that move in them."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def append_short(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let the last block that a running request gets be the null block in its row."""

    def append_row(table: Any, block_ids: list[int], row: int) -> None:
        running = table.num_blocks_per_row[row] > 0 and len(block_ids) > 0
        original(table, block_ids, row)
        if running:
            last = table.num_blocks_per_row[row] - 1
            tally.count(changed=bool(table.block_table.np[row, last]))
            table.block_table.np[row, last] = 0

    return append_row


def commit_short(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave out the last row when the table is copied to the device."""

    def commit_block_table(table: Any, rows: int) -> None:
        if rows > 0:
            buffer = table.block_table
            tally.count(changed=not bool((buffer.gpu[rows - 1] == buffer.cpu[rows - 1]).all()))
        original(table, max(rows - 1, 0))

    return commit_block_table


def not_swapped(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave the block table as it is when two requests trade rows."""
    del original

    def swap_row(table: Any, source: int, target: int) -> None:
        rows = table.block_table.np
        tally.count(changed=bool((rows[source] != rows[target]).any()))

    return swap_row


def not_moved(original: Callable[..., Any], tally: Tally, *, group: str) -> Callable[..., Any]:
    """Leave the table of one kind of layers as it is when a request moves to a free row.

    ``group``: ``mamba`` or ``attention``.
    """

    def move_row(table: Any, source: int, target: int) -> None:
        # Only layers with a state have no slot for each token.
        if (table.slot_mapping_mode.name == "NONE") is not (group == "mamba"):
            original(table, source, target)
            return
        rows = table.block_table.np
        tally.count(changed=bool((rows[source] != rows[target]).any()))

    return move_row


def shifted_slots(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Keep the keys and values of each token where those of the one before it belong."""

    def compute_slot_mapping(table: Any, rows: int, starts: Any, positions: Any) -> None:
        wrong = (positions - 1).clamp(min=0)
        if table.slot_mapping_mode.name != "NONE":
            tally.count(changed=not bool((wrong == positions).all()))
        original(table, rows, starts, wrong)

    return compute_slot_mapping


def condensed(original: Callable[..., Any], tally: Tally, *, stays: str) -> Callable[..., Any]:
    """Forget one thing of each request that moves when the batch closes its gaps.

    ``stays``: array of the batch whose entry does not move along.
    """

    def condense(batch: Any) -> None:
        before, kept = dict(batch.req_id_to_index), getattr(batch, stays).copy()
        original(batch)
        values = getattr(batch, stays)
        for _, row in _moves(before, batch):
            tally.count(changed=bool((values[row] != kept[row]).any()))
            values[row] = kept[row]

    return condense


def condensed_crosswise(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let a request that moves and another one have each other's blocks."""

    def condense(batch: Any) -> None:
        before = dict(batch.req_id_to_index)
        original(batch)
        for _, row in _moves(before, batch):
            other = 0 if row else 1
            swapped = other < batch.num_reqs
            tally.count(changed=swapped)
            if swapped:
                batch.block_table.swap_row(row, other)

    return condense


def _moves(before: dict[str, int], batch: Any) -> list[tuple[int, int]]:
    """Rows from and to which requests have moved."""
    return [
        (before[request], row)
        for request, row in batch.req_id_to_index.items()
        if before.get(request, row) != row
    ]
