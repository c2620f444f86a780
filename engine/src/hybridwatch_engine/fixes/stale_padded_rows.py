"""Padded rows of model runner V2's block tables name no block."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_TABLES = "v1/worker/gpu/block_table.py"


def probe(tree: SourceTree) -> Finding:
    """Look whether the tables of a batch are laid out for its padded rows, too."""
    gather = tree.function(_TABLES, "BlockTables.gather_block_tables")
    if gather is None:
        return Finding("not-applicable", f"no such function in {_TABLES}")
    if mentions(gather, "num_reqs_padded"):
        return Finding("present", f"{_TABLES}:{gather.lineno} lays out the padded rows")
    return Finding("lacking", f"{_TABLES}:{gather.lineno} lays out the rows of requests alone")


def _revert() -> PatchSet:
    """Leave in a padded row what the batch before had there."""
    from vllm.v1.worker.gpu.block_table import BlockTables

    def keep_stale_rows(original: Callable[..., Any]) -> Callable[..., Any]:
        def gather(
            tables: Any, requests: Any, num_reqs_padded: int, *args: Any, **kwargs: Any
        ) -> Any:
            rows = slice(requests.shape[0], num_reqs_padded)
            before = [table[rows].clone() for table in tables.input_block_tables]
            gathered = original(tables, requests, num_reqs_padded, *args, **kwargs)
            for table, stale in zip(tables.input_block_tables, before, strict=True):
                table[rows] = stale
            return gathered

        return gather

    return PatchSet(Patch(BlockTables, "gather_block_tables", keep_stale_rows))


FIX = Fix(
    header("stale-padded-rows"),
    probe,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner_v2:padded_rows",
        with_fix={"rows": [0, 0]},
        without_fix={"rows": [7, 7]},
    ),
)
