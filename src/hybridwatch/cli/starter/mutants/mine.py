"""What the faults of mine.toml do. It runs inside the engine, where torch and vLLM are.

A function gets the target and a tally, and gives what takes the target's place. It calls
``tally.count`` whenever there was something to work on, with whether that made a difference.
"""

from collections.abc import Callable
from typing import Any


def slow_decay(original: Callable[..., Any], tally: Any, *, minus: float) -> Callable[..., Any]:
    """Make the step size of rows that decode smaller."""

    def update(state: Any, *operands: Any, **named: Any) -> Any:
        *others, bias = operands
        tally.count(changed=True)
        # The kernel reads one number a head, expanded.
        slower = (bias[..., :1] - minus).expand_as(bias)
        return original(state, *others, slower, **named)

    return update
