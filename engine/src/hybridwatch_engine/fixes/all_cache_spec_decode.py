"""Speculation with ``mamba_cache_mode="all"`` keeps its slots right (vllm#41233).

Four parts, each a fix of its own; the whole is switched by switching them all. Three of them act at
an engine's start: without them it dies or promises room that it does not have. The fourth, the
anchor of the previous step, is the one whose absence is silent.
"""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import FunctionNode, SourceTree, mentions

_BUILDER = "v1/attention/backends/mamba_attn.py"
_CLASS = "BaseMambaAttentionMetadataBuilder"
_GRAPH_UPDATE = "_update_metadata_for_cudagraph_capture"
_SPEC = "v1/kv_cache_interface.py"
_ANCHOR = "block_idx_last_scheduled_token_prev_step"


def _find_parts(tree: SourceTree) -> dict[str, FunctionNode | None]:
    return {
        "slots": tree.function(_BUILDER, f"{_CLASS}.__init__"),
        "graph rows": tree.function(_BUILDER, f"{_CLASS}.{_GRAPH_UPDATE}"),
        "memory": tree.function(_SPEC, "MambaSpec.max_memory_usage_bytes"),
    }


def _make_finding(
    tree: SourceTree, part: str, path: str, is_present: Callable[[FunctionNode], bool]
) -> Finding:
    """The finding of one part, from one function, in a release that has the cache mode ``all``."""
    function = _find_parts(tree)[part]
    if function is None or not _knows_mode(tree):
        return Finding("not-applicable", f"{_BUILDER} knows no cache mode 'all'")
    present = is_present(function)
    verb = "has" if present else "lacks"
    return Finding("present" if present else "lacking", f"{path}:{function.lineno} {verb} {part}")


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
    return _make_finding(tree, "slots", _BUILDER, _counts_drafts)


def _probe_graph_rows(tree: SourceTree) -> Finding:
    """Look for a cut that does not go by tokens."""
    return _make_finding(
        tree, "graph rows", _BUILDER, lambda update: not mentions(update, "num_decode_tokens")
    )


def _probe_memory(tree: SourceTree) -> Finding:
    """Look for the speculative blocks in the memory of mode ``all``."""
    return _make_finding(tree, "memory", _SPEC, _counts_drafts)


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
        rows_of: Gets the metadata, returns how many.
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


_BLOCKS = [2, 3, 0]

FIX = Fix(header("all-cache-spec-decode"), probe)
SLOTS = Fix(
    header("all-cache-spec-decode-slots"),
    _probe_slots,
    apply=_resized(1),
    revert=_resized(-1),
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:width_of_graph_slots",
        with_fix={"columns": 18, "build": "done"},
        without_fix={"columns": 16, "build": "RuntimeError"},
    ),
)
GRAPH_ROWS = Fix(
    header("all-cache-spec-decode-graph-rows"),
    _probe_graph_rows,
    apply=_apply_graph_rows,
    revert=_revert_graph_rows,
    # Nine tokens are three requests: the graph's eight rows are five too many.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:rows_of_graph",
        with_fix={"requests": 3, "scheduled": _BLOCKS, "computed": _BLOCKS},
        without_fix={
            "requests": 3,
            "scheduled": [*_BLOCKS, *[-1] * 5],
            "computed": [*_BLOCKS, *[-1] * 5],
        },
    ),
)
# Releases before 0.22.0 read one slot for each request, inside a long function of the layer:
# no wrapper reaches that.
ANCHOR = Fix(
    header("all-cache-spec-decode-anchor"),
    _probe_anchor,
    revert=_revert_anchor,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:anchors_of_step",
        with_fix={"anchors": [5, -1, -1]},
        without_fix={"anchors": [-1, -1, -1]},
    ),
)
MEMORY = Fix(
    header("all-cache-spec-decode-memory"),
    _probe_memory,
    apply=_counted(1),
    revert=_counted(-1),
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:pages_of_request",
        with_fix={"pages": 18, "row": 18},
        without_fix={"pages": 16, "row": 18},
    ),
)
