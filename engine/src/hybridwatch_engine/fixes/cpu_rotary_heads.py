"""A CPU's rotary kernel gets the heads of a token in one row (not upstream)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import FunctionNode, SourceTree, calls

_LAYER = "model_executor/layers/rotary_embedding/base.py"
_MODEL = "model_executor/models/lfm2.py"
_KERNEL = "rotary_embedding"


def probe(tree: SourceTree) -> Finding:
    """Look for a layer that hands the kernel what it gets, and a model that keeps heads apart."""
    layer = tree.function(_LAYER, "RotaryEmbedding.forward_cpu")
    model = tree.function(_MODEL, "Lfm2Attention.forward")
    if layer is None or model is None:
        return Finding("not-applicable", f"{_LAYER} or {_MODEL} has no such function")
    if not calls(layer, _KERNEL):
        return Finding("present", f"{_LAYER}:{layer.lineno} does not use the compiled kernel")
    if any(calls(layer, name) for name in ("flatten", "reshape", "view")):
        return Finding("present", f"{_LAYER}:{layer.lineno} puts heads into one row")
    place = _heads_kept_apart(model)
    if place is None:
        return Finding("present", f"{_MODEL}:{model.lineno} hands on heads in one row")
    return Finding("lacking", f"{_MODEL}:{place} hands on heads apart from each other")


def _heads_kept_apart(model: FunctionNode) -> int | None:
    """The line that rotates what was last viewed as tokens, heads and entries."""
    rotation = next(iter(calls(model, "rotary_emb")), None)
    if rotation is None:
        return None
    views = [one for one in calls(model, "view") if one.lineno < rotation.lineno]
    last = max(views, key=lambda one: (one.lineno, one.col_offset), default=None)
    return rotation.lineno if last is not None and len(last.args) == 3 else None


def _apply() -> PatchSet:
    """Show the kernel the heads of each token as one row, and keep what it makes of them."""
    from vllm import _custom_ops

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def rotary_embedding(
            positions: Any, query: Any, key: Any, *args: Any, **named: Any
        ) -> None:
            if query.dim() - positions.dim() < 2:
                original(positions, query, key, *args, **named)
                return
            rows = [None if one is None else one.flatten(-2) for one in (query, key)]
            original(positions, *rows, *args, **named)
            for kept, row in zip((query, key), rows, strict=True):
                # Where the entries do not lie one behind the other, the row is a copy.
                if row is not None and row.data_ptr() != kept.data_ptr():
                    kept.copy_(row.view_as(kept))

        return rotary_embedding

    return PatchSet(Patch(_custom_ops, _KERNEL, wrap))


FIX = Fix(
    header("cpu-rotary-heads"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.kernels:heads_apart",
        with_fix={"tokens_turned": [True, True, True, True]},
        without_fix={"tokens_turned": [False, False, False, False]},
    ),
)
