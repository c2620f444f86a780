"""Speculation with ``mamba_cache_mode="all"`` keeps its slots right (vllm#41233).

Four parts, each a fix of its own; the whole is switched by switching them all. Three of them act at
an engine's start: without them it dies or promises room that it does not have. The fourth, the
anchor of the previous step, is the one whose absence is silent.
"""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import FunctionNode, SourceTree, mentions

_BUILDER = "v1/attention/backends/mamba_attn.py"
_CLASS = "BaseMambaAttentionMetadataBuilder"
_GRAPH_UPDATE = "_update_metadata_for_cudagraph_capture"
_SPEC = "v1/kv_cache_interface.py"
_UTILS = "v1/worker/mamba_utils.py"
_ANCHOR = "block_idx_last_scheduled_token_prev_step"
_ALL = 'With mamba_cache_mode="all" a request has a slot for each block and, while it speculates, '


def _header(**fields: Any) -> Header:
    """What all parts have in common."""
    return Header(
        upstream="vllm#41233 (issue vllm#39809)",
        present_from="0.22.0",
        remove_when="no supported release has mamba_cache_mode='all'; 0.32.0 took it out",
        **fields,
    )


HEADER = _header(
    id="all-cache-spec-decode",
    target=f"{_BUILDER}, model_executor/layers/mamba/mamba_mixer2.py, {_UTILS}, {_SPEC}",
    why="With every block's state cached and drafts in flight, too few slots are reserved, and "
    "after a rejected draft the state is read from a slot that holds another step's state.",
    how="All four parts below.",
    switch="start",
    scenario="curated/spec-decode-all-cache",
)
SLOTS = _header(
    id="all-cache-spec-decode-slots",
    target=f"{_BUILDER} {_CLASS}.__init__",
    why=f"{_ALL}one more for each draft. The buffer that a FULL graph reads has no columns for "
    "those, so the engine dies while it captures.",
    how="The buffer is as wide as the blocks of the longest request and the drafts together.",
    switch="start",
    scenario="curated/spec-decode-slots",
)
GRAPH_ROWS = _header(
    id="all-cache-spec-decode-graph-rows",
    target=f"{_BUILDER} {_CLASS}.{_GRAPH_UPDATE}",
    why=f"{_ALL}several tokens in a step. The block indices of a batch that replays a FULL graph "
    "are cut to its number of tokens, not of requests, and padded rows keep old ones, so the "
    "layers are given more rows than they have requests.",
    how="One row for each request of the graph, zero in those that are padding.",
    switch="start",
    scenario="curated/spec-decode-graph-rows",
)
ANCHOR = _header(
    id="all-cache-spec-decode-anchor",
    target=f"{_UTILS} preprocess_mamba_all_specdec, {_BUILDER}",
    why="A step writes its states from the block of its last draft on. When that draft reached "
    "into another block and was rejected, the next step looks for the state by the block of the "
    "last accepted token, and continues from what an earlier step left there.",
    how="The block from which the previous step wrote is remembered for each request.",
    switch="live",
    scenario="smoke/spec-decode-all-cache",
)
MEMORY = _header(
    id="all-cache-spec-decode-memory",
    target=f"{_SPEC} MambaSpec.max_memory_usage_bytes",
    why=f"{_ALL}one more for each draft. These are not counted when the engine works out whether "
    "a request of max_model_len fits into its memory.",
    how="The speculative slots are counted.",
    switch="start",
    scenario="curated/spec-decode-memory",
)


def _parts_of(tree: SourceTree) -> dict[str, FunctionNode | None]:
    return {
        "slots": tree.function(_BUILDER, f"{_CLASS}.__init__"),
        "graph rows": tree.function(_BUILDER, f"{_CLASS}.{_GRAPH_UPDATE}"),
        "memory": tree.function(_SPEC, "MambaSpec.max_memory_usage_bytes"),
    }


def _found(
    tree: SourceTree, part: str, path: str, tells: Callable[[FunctionNode], bool]
) -> Finding:
    """One part, told by one function, in a release that knows the cache mode ``all`` at all."""
    function = _parts_of(tree)[part]
    if function is None or not _knows_mode(tree):
        return Finding("not-applicable", f"{_BUILDER} knows no cache mode 'all'")
    present = tells(function)
    word = "has" if present else "lacks"
    return Finding("present" if present else "lacking", f"{path}:{function.lineno} {word} {part}")


def _knows_mode(tree: SourceTree) -> bool:
    module = tree.module(_BUILDER)
    return module is not None and mentions(module, "block_idx_last_scheduled_token")


def _first_mode_branch(function: FunctionNode) -> ast.If | None:
    """The first branch that asks for the cache mode."""
    branches = (node for node in ast.walk(function) if isinstance(node, ast.If))
    return next((node for node in branches if mentions(node.test, "mamba_cache_mode")), None)


def _counts_drafts(function: FunctionNode) -> bool:
    branch = _first_mode_branch(function)
    return branch is not None and any(
        mentions(statement, "num_speculative_blocks") for statement in branch.body
    )


def _probe_slots(tree: SourceTree) -> Finding:
    """Look for the speculative blocks in the width of the graph's buffer."""
    return _found(tree, "slots", _BUILDER, _counts_drafts)


def _probe_graph_rows(tree: SourceTree) -> Finding:
    """Look for a cut that does not go by tokens."""
    return _found(
        tree, "graph rows", _BUILDER, lambda update: not mentions(update, "num_decode_tokens")
    )


def _probe_memory(tree: SourceTree) -> Finding:
    """Look for the speculative blocks in the memory of mode ``all``."""
    return _found(tree, "memory", _SPEC, _counts_drafts)


def _probe_anchor(tree: SourceTree) -> Finding:
    """Look for the anchor of the previous step in the metadata."""
    if not _knows_mode(tree):
        return Finding("not-applicable", f"{_BUILDER} knows no cache mode 'all'")
    module = tree.module(_BUILDER)
    if module is not None and mentions(module, _ANCHOR):
        return Finding("present", f"{_BUILDER} keeps the block that the previous step wrote last")
    return Finding("lacking", f"{_BUILDER} does not remember the previous step's block")


_PROBES = (_probe_slots, _probe_graph_rows, _probe_anchor, _probe_memory)


def probe(tree: SourceTree) -> Finding:
    """Look at all parts."""
    findings = [look(tree) for look in _PROBES]
    if any(finding.state == "not-applicable" for finding in findings):
        return findings[0]
    present = all(finding.state == "present" for finding in findings)
    evidence = "; ".join(finding.evidence for finding in findings)
    return Finding("present" if present else "lacking", evidence)


def _resized(change: int) -> Callable[[], PatchSet]:
    """Make the graph's buffer wider or narrower by the speculative blocks.

    Args:
        change: 1 for wider, -1 for narrower.
    """

    def make() -> PatchSet:
        from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def init(builder: Any, spec: Any, *args: Any, **kwargs: Any) -> None:
                original(builder, spec, *args, **kwargs)
                if builder.vllm_config.cache_config.mamba_cache_mode == "all":
                    buffer = builder.state_indices_tensor_d
                    width = buffer.shape[1] + change * spec.num_speculative_blocks
                    builder.state_indices_tensor_d = buffer.new_empty((buffer.shape[0], width))

            return init

        return PatchSet(Patch(BaseMambaAttentionMetadataBuilder, "__init__", wrap))

    return make


def _cut(rows_of: Callable[[Any], int]) -> Patch:
    """Cut the block indices of a graph's batch to a number of rows.

    Args:
        rows_of: Gets the metadata, tells how many.
    """
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    names = ("block_idx_last_scheduled_token", "block_idx_last_computed_token")

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any) -> Any:
            final = original(builder, metadata)
            mode = builder.vllm_config.cache_config.mamba_cache_mode
            if mode != "all" or final.state_indices_tensor_d is metadata.state_indices_tensor_d:
                return final  # no graph replays this batch
            return replace(
                final, **{name: getattr(builder, name)[: rows_of(final)] for name in names}
            )

        return update

    return Patch(BaseMambaAttentionMetadataBuilder, _GRAPH_UPDATE, wrap)


def _apply_graph_rows() -> PatchSet:
    """One row for each request of the graph, nothing left over in those that are padding."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    def clean(original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any) -> Any:
            if builder.vllm_config.cache_config.mamba_cache_mode == "all":
                builder.block_idx_last_scheduled_token.zero_()
                builder.block_idx_last_computed_token.zero_()
            return original(builder, metadata)

        return update

    return PatchSet(
        Patch(BaseMambaAttentionMetadataBuilder, _GRAPH_UPDATE, clean),
        _cut(lambda metadata: int(metadata.num_reqs)),
    )


def _revert_graph_rows() -> PatchSet:
    """As many rows as the batch has tokens."""
    return PatchSet(_cut(lambda metadata: int(metadata.num_decode_tokens)))


def _counted(change: int) -> Callable[[], PatchSet]:
    """Count the speculative slots in the memory of a request, or do not.

    The width of a block table's row, which some releases work out from it, stays as released.

    Args:
        change: 1 to count them, -1 not to.
    """

    def make() -> PatchSet:
        from vllm.v1.kv_cache_interface import MambaSpec

        def memory(original: Callable[..., int]) -> Callable[..., int]:
            def max_memory_usage_bytes(spec: Any, config: Any) -> int:
                extra = spec.num_speculative_blocks * spec.page_size_bytes
                by_block = config.cache_config.mamba_cache_mode == "all"
                return original(spec, config) + (change * extra if by_block else 0)

            return max_memory_usage_bytes

        def width(original: Callable[..., int]) -> Callable[..., int]:
            def max_num_blocks_per_req(spec: Any, config: Any, max_len: int) -> int:
                by_block = config.cache_config.mamba_cache_mode == "all"
                extra = change * spec.num_speculative_blocks if by_block else 0
                return original(spec, config, max_len) - extra

            return max_num_blocks_per_req

        patches = [Patch(MambaSpec, "max_memory_usage_bytes", memory)]
        if hasattr(MambaSpec, "max_num_blocks_per_req"):
            patches.append(Patch(MambaSpec, "max_num_blocks_per_req", width))
        return PatchSet(*patches)

    return make


def _revert_anchor() -> PatchSet:
    """Let no step remember the block from which the one before wrote.

    The metadata builder then falls back on the block of the last accepted token.
    """
    from vllm.v1.worker import mamba_utils

    def forget(original: Callable[..., None]) -> Callable[..., None]:
        def preprocess(scheduled: Any, batch: Any, remembered: Any, *args: Any) -> None:
            mamba_utils.cleanup_mamba_state_idx(scheduled, remembered)
            original(scheduled, batch, {}, *args)

        return preprocess

    return PatchSet(Patch(mamba_utils, "preprocess_mamba_all_specdec", forget))


FIX = Fix(HEADER, probe, parts=(SLOTS.id, GRAPH_ROWS.id, ANCHOR.id, MEMORY.id))
PARTS = (
    Fix(SLOTS, _probe_slots, apply=_resized(1), revert=_resized(-1)),
    Fix(GRAPH_ROWS, _probe_graph_rows, apply=_apply_graph_rows, revert=_revert_graph_rows),
    # Releases before 0.22.0 read one slot for each request, inside a long function of the layer:
    # no wrapper reaches that.
    Fix(ANCHOR, _probe_anchor, revert=_revert_anchor),
    Fix(MEMORY, _probe_memory, apply=_counted(1), revert=_counted(-1)),
)
