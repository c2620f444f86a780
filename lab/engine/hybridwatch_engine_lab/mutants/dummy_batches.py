"""Mutants of dummy batches, which must leave nothing behind."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, state_caches


def clears_a_slot(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let each dummy batch clear one slot of the states, the next one each time."""
    turn = 0

    def dummy_run(runner: Any, *args: Any, **named: Any) -> Any:
        nonlocal turn
        answer = original(runner, *args, **named)
        turn += 1
        found = False
        for _, cache in state_caches(runner):
            slot = 1 + turn % (len(cache) - 1)
            found |= bool(cache[slot].any())
            cache[slot] = 0
        tally.count(changed=found)
        return answer

    return dummy_run
