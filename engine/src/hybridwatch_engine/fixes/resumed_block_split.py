"""What a preempted request computes again is cut at the ends of blocks, too (vllm#33706)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"
_SPLIT = "_mamba_block_aligned_split"


def probe(tree: SourceTree) -> Finding:
    """Look for a cut that goes by all tokens of a request and not by its prompt alone."""
    split = tree.function(_SCHEDULER, f"Scheduler.{_SPLIT}")
    if split is None:
        return Finding("not-applicable", f"{_SCHEDULER} has no {_SPLIT}")
    for_prompts = mentions(split, "num_output_tokens") or not mentions(split, "num_tokens")
    part = "prompts" if for_prompts else "whatever is computed"
    evidence = f"{_SCHEDULER}:{split.lineno} cuts {part} at the ends of blocks"
    return Finding("lacking" if for_prompts else "present", evidence)


def _revert() -> PatchSet:
    """Leave the chunks of a request that has output tokens as the budget makes them."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def wrap(original: Callable[..., int]) -> Callable[..., int]:
        def split(scheduler: Any, request: Any, num_new_tokens: int, *args: Any, **kw: Any) -> int:
            if request.num_output_tokens:
                return num_new_tokens
            return original(scheduler, request, num_new_tokens, *args, **kw)

        return split

    return PatchSet(Patch(Scheduler, _SPLIT, wrap))


FIX = Fix(
    header("resumed-block-split"),
    probe,
    revert=_revert,
    # A budget of one block and a half.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.prefix_cache:chunks",
        with_fix={"resumed": 16, "new": 16, "decode": 1},
        without_fix={"resumed": 24, "new": 16, "decode": 1},
    ),
)
