"""Attention metadata of model runner V2 carry the batch's own maximum (vllm#43991)."""

import ast

from hybridwatch_engine.fixes.fix import Finding, Fix, Header
from hybridwatch_engine.source import SourceTree, calls, mentions

HEADER = Header(
    id="draft-max-seq-len",
    target="v1/worker/gpu/model_states/mamba_hybrid.py MambaHybridModelState.prepare_attn; "
    "v1/worker/gpu/spec_decode (the draft's metadata)",
    why="Model runner V2 hands max_model_len to the attention of hybrid targets and of the Eagle "
    "draft, so a backend plans for, and may read, rows far behind the batch's longest request.",
    how="Target: maximum of the batch's sequence lengths. Draft: that plus the number of "
    "speculative steps, never more than max_model_len.",
    upstream="vllm#43991 (after vllm#40654)",
    present_from="0.23.0",
    switch="probe",
    scenario="none yet",
    remove_when="no supported release is older than 0.23.0 and the known-bad control is retired",
)

_HYBRID = "v1/worker/gpu/model_states/mamba_hybrid.py"
_DRAFT = "v1/worker/gpu/spec_decode"


def _target_half(tree: SourceTree) -> bool | None:
    """Whether the hybrid target uses the batch's maximum; ``None`` where there is no such code."""
    prepare = tree.function(_HYBRID, "MambaHybridModelState.prepare_attn")
    if prepare is None:
        return None
    passed = [
        keyword.value
        for call in calls(prepare, "build_attn_metadata")
        for keyword in call.keywords
        if keyword.arg == "max_seq_len"
    ]
    whole = [value for value in passed if isinstance(value, ast.Attribute)]
    return not whole


def probe(tree: SourceTree) -> Finding:
    """Look at both halves: the hybrid target's metadata and the draft's."""
    target = _target_half(tree)
    files = tree.files_below(_DRAFT)
    if target is None and not files:
        return Finding("not-applicable", f"no {_HYBRID} and no {_DRAFT}")
    parsed = [tree.module(path) for path in files]
    draft = any(mentions(module, "draft_max_seq_len") for module in parsed if module is not None)
    evidence = f"target half {_word(target)} ({_HYBRID}), draft half {_word(draft)} ({_DRAFT})"
    return Finding("present" if target and draft else "lacking", evidence)


def _word(present: bool | None) -> str:
    return {True: "present", False: "lacking", None: "not there"}[present]


FIX = Fix(HEADER, probe)
