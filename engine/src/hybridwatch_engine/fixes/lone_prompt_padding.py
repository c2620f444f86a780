"""A prompt of one token is scheduled without drafts: there is no state to roll back to yet.

Beyond upstream: vllm#55178 mended the same for the last token of a longer prompt.
"""

import ast
from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"
_STEP = "Scheduler.schedule"
_PADS = {"num_spec_tokens", "prefill_scheduled"}
"""What the condition asks about under which a waiting request is padded."""


def probe(tree: SourceTree) -> Finding:
    """Look for padding that asks for nothing but a running request."""
    step = tree.function(_SCHEDULER, _STEP)
    if step is None or not mentions(step, "pad_spec_decode"):
        return Finding("not-applicable", f"{_SCHEDULER} pads no waiting request")
    for node in ast.walk(step):
        if isinstance(node, ast.If) and _names(node.test) >= _PADS:
            place = f"{_SCHEDULER}:{node.lineno}"
            if any(_names(one) == {"num_computed_tokens"} for one in _parts(node.test)):
                return Finding("present", f"{place} pads no request without computed tokens")
            return Finding("lacking", f"{place} pads a request that nothing was computed of")
    return Finding("not-applicable", f"{_SCHEDULER}:{step.lineno} pads in another way")


def _names(test: ast.expr) -> set[str]:
    nodes = list(ast.walk(test))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def _parts(test: ast.expr) -> list[ast.expr]:
    """What must be true at the same time."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _apply() -> PatchSet:
    """Take the drafts that do not exist out of a step, before the scheduler counts its tokens."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def update_after_schedule(scheduler: Any, scheduled: Any) -> None:
            drafts = scheduled.scheduled_spec_decode_tokens
            for name in [n for n in drafts if not scheduler.requests[n].num_computed_tokens]:
                count = len(drafts.pop(name))
                scheduled.num_scheduled_tokens[name] -= count
                scheduled.total_num_scheduled_tokens -= count
            original(scheduler, scheduled)

        return update_after_schedule

    return PatchSet(Patch(Scheduler, "_update_after_schedule", wrap))


FIX = Fix(
    header("lone-prompt-padding"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.scheduling:lone_prompt_beside_a_running_request",
        with_fix={"tokens": 1, "drafts": 0},
        without_fix={"tokens": 4, "drafts": 3},
    ),
)
