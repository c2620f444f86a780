"""A CPU's gated delta net keeps its window right in a step of few drafts, as in 0.33.0."""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree

_FILE = "model_executor/layers/mamba/ops/cpu/gdn_attention.py"
_STEP = "_spec_forward"


def probe(tree: SourceTree) -> Finding:
    """Look for a window that a step of few tokens fills up with more of what was there."""
    step = tree.function(_FILE, _STEP)
    if step is None:
        return Finding("not-applicable", f"{_FILE} does not speculate")
    for node in ast.walk(step):
        if isinstance(node, ast.Slice) and node.upper is not None:
            bound = ast.unparse(node.upper)
            if "offset" in bound and "state_len - q_i" in bound:
                return Finding("lacking", f"{_FILE}:{node.lineno} keeps [:, {ast.unparse(node)}]")
    return Finding("present", f"{_FILE}:{step.lineno} keeps no more the shorter a step is")


def _apply() -> PatchSet:
    """Compute rows of one length at a time, with a window as long as those rows need."""
    import torch
    from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def spec_forward(*operands: Any) -> Any:
            layer, metadata, mixed, b, a, windows, states, width, state_len = operands
            starts = metadata.spec_query_start_loc[: metadata.num_spec_decodes + 1]
            lengths = starts.diff()
            longest = state_len - width + 2
            if bool((lengths == longest).all()):
                return original(*operands)
            given = None
            for length in lengths[lengths > 0].unique().tolist():
                rows = (lengths == length).nonzero().flatten()
                tokens = (starts[rows].unsqueeze(1) + torch.arange(length)).flatten()
                of_rows = replace(
                    metadata,
                    num_spec_decodes=len(rows),
                    spec_query_start_loc=starts.new_tensor(range(0, len(tokens) + 1, length)),
                    spec_state_indices_tensor=metadata.spec_state_indices_tensor[rows],
                    num_accepted_tokens=metadata.num_accepted_tokens[rows],
                )
                kept = state_len - longest + length
                part = original(
                    *(layer, of_rows, mixed[tokens], b[tokens], a[tokens]),
                    *(windows[..., :kept], states, width, kept),
                )
                given = part.new_zeros(len(mixed), *part.shape[1:]) if given is None else given
                given[tokens] = part
            return given

        return spec_forward

    return PatchSet(Patch(gdn_attention, _STEP, wrap))


FIX = Fix(
    header("cpu-delta-short-steps"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.kernels:window_after_short_step",
        with_fix={"alone": [2, 9], "beside": [2, 9]},
        without_fix={"alone": [2, 3], "beside": [2, 3]},
    ),
)
