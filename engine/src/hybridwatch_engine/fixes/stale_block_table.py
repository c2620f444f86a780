"""Dummy runs must not write through block-table rows of finished requests.

Three parts, each a fix of its own. On model runner V1 rows of finished requests are cleared and the
cleared table is committed before a dummy run (vllm#37728), and so is the row that condensing
vacates (vllm#49757). V2 clears the rows that a dummy run is given (vllm#49757, too). The whole is
switched by switching all.
"""

import ast
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls

_TABLE = "v1/worker/block_table.py"
_RUNNER = "v1/worker/gpu_model_runner.py"
_TABLES_V2 = "v1/worker/gpu/block_table.py"


_IN_DUMMY_RUN: ContextVar[bool] = ContextVar("a dummy run is in progress", default=False)


def _writes_zero(function: ast.AST | None) -> bool:
    """Whether a function stores a literal 0 into a subscript."""
    if function is None:
        return False
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and isinstance(node.value, ast.Constant)
        and node.value.value == 0
        for node in ast.walk(function)
    )


_NOT_THERE = Finding("not-applicable", f"{_TABLE} or {_RUNNER} has no such rows or dummy runs")


def _probe_finished(tree: SourceTree) -> Finding:
    """Look for rows that are cleared, and committed in a dummy run."""
    dummy = tree.function(_RUNNER, "GPUModelRunner._dummy_run")
    if dummy is None or tree.function(_TABLE, "BlockTable.move_row") is None:
        return _NOT_THERE
    clears = tree.function(_TABLE, "BlockTable.clear_row") is not None
    commits = bool(calls(dummy, "commit_block_table"))
    evidence = (
        f"{_TABLE} {'has' if clears else 'lacks'} clear_row, the dummy run of {_RUNNER} "
        f"{'commits' if commits else 'does not commit'} the table"
    )
    return Finding("present" if clears and commits else "lacking", evidence)


def _probe_vacated(tree: SourceTree) -> Finding:
    """Look for a move that clears the row it comes from."""
    move = tree.function(_TABLE, "BlockTable.move_row")
    if move is None or tree.function(_RUNNER, "GPUModelRunner._dummy_run") is None:
        return _NOT_THERE
    clears = _writes_zero(move)
    evidence = f"{_TABLE}:{move.lineno} {'clears' if clears else 'leaves'} the vacated row"
    return Finding("present" if clears else "lacking", evidence)


def _probe_dummy(tree: SourceTree) -> Finding:
    """Look for rows that V2 clears before it hands them to a dummy run."""
    give = tree.function(_TABLES_V2, "BlockTables.get_dummy_block_tables")
    if give is None:
        return Finding("not-applicable", f"no such function in {_TABLES_V2}")
    clears = bool(calls(give, "zero_"))
    evidence = f"{_TABLES_V2}:{give.lineno} {'clears' if clears else 'leaves'} the dummy run's rows"
    return Finding("present" if clears else "lacking", evidence)


def probe(tree: SourceTree) -> Finding:
    """Look at all parts."""
    parts = (_probe_finished(tree), _probe_vacated(tree), _probe_dummy(tree))
    evidence = "; ".join(part.evidence for part in parts)
    for state in ("not-applicable", "lacking"):
        if any(part.state == state for part in parts):
            return Finding(state, evidence)
    return Finding("present", evidence)


def _apply_finished() -> PatchSet:
    """Clear the rows of leaving requests, and commit the whole table before a dummy run."""
    from vllm.v1.worker.gpu_input_batch import InputBatch
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def clear(original: Callable[..., Any]) -> Callable[..., Any]:
        def remove_request(batch: Any, req_id: str) -> Any:
            row = original(batch, req_id)
            if row is not None:
                for table in batch.block_table.block_tables:
                    _clear_row(table, row)
            return row

        return remove_request

    def commit(original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_run(runner: Any, *args: Any, **kwargs: Any) -> Any:
            if hasattr(runner, "input_batch"):  # not there yet while memory is profiled
                batch = runner.input_batch
                batch.block_table.commit_block_table(batch.max_num_reqs)
            return original(runner, *args, **kwargs)

        return dummy_run

    return PatchSet(
        Patch(InputBatch, "remove_request", clear), Patch(GPUModelRunner, "_dummy_run", commit)
    )


def _revert_finished() -> PatchSet:
    """Leave rows as they are when their request leaves, and the device's copy in a dummy run."""
    from vllm.v1.worker.block_table import MultiGroupBlockTable
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def keep(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda tables, row: None  # noqa: ARG005 - the signature of what it stands for

    def notice(original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_run(runner: Any, *args: Any, **kwargs: Any) -> Any:
            token = _IN_DUMMY_RUN.set(True)
            try:
                return original(runner, *args, **kwargs)
            finally:
                _IN_DUMMY_RUN.reset(token)

        return dummy_run

    def not_in_dummy_runs(original: Callable[..., Any]) -> Callable[..., Any]:
        def commit(tables: Any, rows: int) -> None:
            if not _IN_DUMMY_RUN.get():
                original(tables, rows)

        return commit

    return PatchSet(
        Patch(MultiGroupBlockTable, "clear_row", keep),
        Patch(GPUModelRunner, "_dummy_run", notice),
        Patch(MultiGroupBlockTable, "commit_block_table", not_in_dummy_runs),
    )


def _apply_vacated() -> PatchSet:
    """Clear the row that a request has moved away from."""
    from vllm.v1.worker.block_table import BlockTable

    def clear(original: Callable[..., Any]) -> Callable[..., Any]:
        def move_row(table: Any, source: int, target: int) -> None:
            original(table, source, target)
            _clear_row(table, source)

        return move_row

    return PatchSet(Patch(BlockTable, "move_row", clear))


def _revert_vacated() -> PatchSet:
    """Leave the vacated row as it was before the move."""
    from vllm.v1.worker.block_table import BlockTable

    def keep(original: Callable[..., Any]) -> Callable[..., Any]:
        def move_row(table: Any, source: int, target: int) -> None:
            count = table.num_blocks_per_row[source]
            row = table.block_table.np[source, :count].copy()
            original(table, source, target)
            table.block_table.np[source, :count] = row
            table.num_blocks_per_row[source] = count

        return move_row

    return PatchSet(Patch(BlockTable, "move_row", keep))


def _apply_dummy() -> PatchSet:
    """Clear the rows that V2 gives a dummy run."""
    from vllm.v1.worker.gpu.block_table import BlockTables

    def cleared(original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_tables(tables: Any, rows: int) -> Any:
            return tuple(table.zero_() for table in original(tables, rows))

        return dummy_tables

    return PatchSet(Patch(BlockTables, "get_dummy_block_tables", cleared))


def _revert_dummy() -> PatchSet:
    """Give dummy runs the rows of the batch before."""
    from vllm.v1.worker.gpu.block_table import BlockTables

    def make_stale_tables(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda tables, rows: tuple(table[:rows] for table in tables.input_block_tables)

    return PatchSet(Patch(BlockTables, "get_dummy_block_tables", make_stale_tables))


def _clear_row(table: Any, row: int) -> None:
    """Make a row name no block; block 0 is the null block."""
    table.block_table.np[row, : table.num_blocks_per_row[row]] = 0
    table.num_blocks_per_row[row] = 0


_STALE_ROWS = [[10, 20], [11, 21], [12, 22]]
_NO_ROWS = [[0, 0]] * 3

FINISHED_ROWS = Fix(
    header("stale-block-table-finished-rows"),
    _probe_finished,
    apply=_apply_finished,
    revert=_revert_finished,
    # The last row was written after the last commit: who sees it on the device has committed.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:rows_after_leaving",
        with_fix={"host": [*_NO_ROWS, [9, 0]], "device": [*_NO_ROWS, [9, 0]]},
        without_fix={"host": [*_STALE_ROWS, [9, 0]], "device": [*_STALE_ROWS, [0, 0]]},
    ),
)
VACATED_ROWS = Fix(
    header("stale-block-table-vacated-rows"),
    _probe_vacated,
    apply=_apply_vacated,
    revert=_revert_vacated,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:rows_after_moving",
        with_fix={"host": [[12, 22], [11, 21], [0, 0]]},
        without_fix={"host": [[12, 22], [11, 21], [12, 22]]},
    ),
)
DUMMY_ROWS = Fix(
    header("stale-block-table-dummy-rows"),
    _probe_dummy,
    apply=_apply_dummy,
    revert=_revert_dummy,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner_v2:rows_of_dummy_run",
        with_fix={"rows": [0, 0, 7]},
        without_fix={"rows": [7, 7, 7]},
    ),
)
FIX = Fix(header("stale-block-table"), probe)
