"""Dummy runs must not write through block-table rows of finished requests (vllm#37728)."""

import ast

from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.source import SourceTree, calls

HEADER = Header(
    id="stale-block-table",
    target="v1/worker/block_table.py, v1/worker/gpu_model_runner.py GPUModelRunner._dummy_run",
    why="A data-parallel rank without work replays a FULL graph over whatever its block table "
    "says. Rows of finished requests name blocks that may hold live or cached Mamba state by then, "
    "and Mamba layers write in place.",
    how="Rows are cleared when their request leaves, also the row that condensing vacates, and a "
    "dummy run commits the cleared table first.",
    upstream="vllm#37728, completed by vllm#49757",
    present_from="0.19.0, whole from 0.27.1",
    switch="probe",
    scenario="none yet",
    remove_when="no supported release is older than 0.27.1 and the known-bad control is retired",
)

_TABLE = "v1/worker/block_table.py"
_RUNNER = "v1/worker/gpu_model_runner.py"


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


def probe(tree: SourceTree) -> Finding:
    """Look at both halves: rows cleared and committed, vacated rows cleared."""
    dummy = tree.function(_RUNNER, "GPUModelRunner._dummy_run")
    move = tree.function(_TABLE, "BlockTable.move_row")
    if dummy is None or move is None:
        return Finding("not-applicable", f"{_TABLE} or {_RUNNER} has no such rows or dummy runs")
    first = tree.function(_TABLE, "BlockTable.clear_row") is not None and bool(
        calls(dummy, "commit_block_table")
    )
    second = _writes_zero(move)
    evidence = (
        f"clear and commit {'present' if first else 'lacking'} (vllm#37728), "
        f"vacated row cleared {'present' if second else 'lacking'} (vllm#49757)"
    )
    return Finding("present" if first and second else "lacking", evidence)


FIX = Fix(HEADER, probe)
