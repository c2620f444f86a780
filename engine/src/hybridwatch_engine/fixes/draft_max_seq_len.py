"""Attention metadata of model runner V2 carry the batch's own maximum (vllm#43991).

Two halves, each a fix of its own: the metadata of a hybrid target, and those of the draft. The
whole is switched by switching both.
"""

import ast
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix, State
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.model_runner import Function, draft_build
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_HYBRID = "v1/worker/gpu/model_states/mamba_hybrid.py"
_DRAFT = "v1/worker/gpu/spec_decode"


_WANTED: ContextVar[int | None] = ContextVar(
    "max_seq_len of the metadata being built", default=None
)
_LONGEST: ContextVar[int | None] = ContextVar("longest sequence drafted for", default=None)


def _probe_target(tree: SourceTree) -> Finding:
    """Look at what the hybrid target's metadata are built with."""
    prepare = tree.function(_HYBRID, "MambaHybridModelState.prepare_attn")
    if prepare is None:
        return Finding("not-applicable", f"no {_HYBRID}")
    passed = [
        keyword.value
        for call in calls(prepare, "build_attn_metadata")
        for keyword in call.keywords
        if keyword.arg == "max_seq_len"
    ]
    whole = [value for value in passed if isinstance(value, ast.Attribute)]
    state: State = "lacking" if whole or not passed else "present"
    return Finding(state, f"{_HYBRID}:{prepare.lineno} {_describe(state)}")


def _probe_draft(tree: SourceTree) -> Finding:
    """Look for a maximum of the draft's own."""
    files = tree.files_below(_DRAFT)
    if not files:
        return Finding("not-applicable", f"no {_DRAFT}")
    parsed = [tree.module(path) for path in files]
    own = any(mentions(module, "draft_max_seq_len") for module in parsed if module is not None)
    state: State = "present" if own else "lacking"
    return Finding(state, f"{_DRAFT} {_describe(state)}")


def _describe(state: State) -> str:
    return f"hands on {'the maximum of the batch' if state == 'present' else 'max_model_len'}"


def probe(tree: SourceTree) -> Finding:
    """Look at both halves: the hybrid target's metadata and the draft's."""
    halves = (_probe_target(tree), _probe_draft(tree))
    evidence = "; ".join(half.evidence for half in halves)
    for state in ("not-applicable", "lacking"):
        if any(half.state == state for half in halves):
            return Finding(state, evidence)
    return Finding("present", evidence)


def _apply_target() -> PatchSet:
    """Speak of the longest sequence that the host knows of in the batch."""

    def longest(state: Any, batch: Any, *_: Any, for_capture: bool = False, **__: Any) -> int:
        return _max_model_len(state) if for_capture else _longest(batch)

    return PatchSet(*_build_patches(longest, _target_build()))


def _revert_target() -> PatchSet:
    """Speak of the longest sequence that there can be."""
    return PatchSet(*_build_patches(_max_model_len, _target_build()))


def _apply_draft() -> PatchSet:
    """Speak of the longest sequence of the target's batch and of the drafts behind it."""
    owner, name = draft_build()

    def remember(original: Callable[..., Any]) -> Callable[..., Any]:
        def propose(speculator: Any, input_batch: Any, *args: Any, **kwargs: Any) -> Any:
            token = _LONGEST.set(_longest(input_batch))
            try:
                return original(speculator, input_batch, *args, **kwargs)
            finally:
                _LONGEST.reset(token)

        return propose

    def longest(speculator: Any, *_: Any, **__: Any) -> int:
        target_length = _LONGEST.get()
        if target_length is None:  # a graph is captured, for any batch
            return _max_model_len(speculator)
        return min(
            target_length + int(speculator.num_speculative_steps), _max_model_len(speculator)
        )

    return PatchSet(Patch(owner, "propose", remember), *_build_patches(longest, (owner, name)))


def _revert_draft() -> PatchSet:
    """Speak of the longest sequence that there can be."""
    return PatchSet(*_build_patches(_max_model_len, draft_build()))


def _target_build() -> Function:
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState

    return MambaHybridModelState, "prepare_attn"


def _longest(batch: Any) -> int:
    return int(batch.seq_lens_cpu_upper_bound[: batch.num_reqs].max())


def _max_model_len(owner: Any, *_: Any, **__: Any) -> int:
    return int(owner.max_model_len)


def _build_patches(longest: Callable[..., int], function: Function) -> tuple[Patch, Patch]:
    """Patches that let the metadata which a function builds speak of another longest sequence.

    Args:
        longest: Gets the arguments of the function, returns the longest sequence.
        function: What builds metadata, by ``build_attn_metadata`` of its module.
    """
    owner, name = function

    def note(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def prepare(*args: Any, **kwargs: Any) -> Any:
            token = _WANTED.set(longest(*args, **kwargs))
            try:
                return original(*args, **kwargs)
            finally:
                _WANTED.reset(token)

        return prepare

    def obey(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(*args: Any, **kwargs: Any) -> Any:
            wanted = _WANTED.get()
            if wanted is not None:  # others of the module build metadata too
                kwargs["max_seq_len"] = wanted
            return original(*args, **kwargs)

        return build

    return Patch(owner, name, note), Patch(
        sys.modules[owner.__module__], "build_attn_metadata", obey
    )


TARGET_HALF = Fix(
    header("draft-max-seq-len-target"),
    _probe_target,
    apply=_apply_target,
    revert=_revert_target,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner_v2:longest_of_target",
        with_fix={"step": 50, "capture": 4096},
        without_fix={"step": 4096, "capture": 4096},
    ),
)
DRAFT_HALF = Fix(
    header("draft-max-seq-len-draft"),
    _probe_draft,
    apply=_apply_draft,
    revert=_revert_draft,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner_v2:longest_of_draft",
        with_fix={"short": 53, "at_the_end": 4096},
        without_fix={"short": 4096, "at_the_end": 4096},
    ),
)
FIX = Fix(header("draft-max-seq-len"), probe)
