"""Mutants that cost time and leave every answer as it is."""

import time
from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def slower(original: Callable[..., Any], tally: Tally, *, share: float) -> Callable[..., Any]:
    """Sleep after each call. ``share``: of the time that the call has taken."""

    def call(*args: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        answer = original(*args, **named)
        tally.count(changed=True)
        time.sleep(share * (time.perf_counter() - begin))
        return answer

    return call


def twice(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Do again what needs to be done once, and hand out the second answer."""

    def call(*args: Any, **named: Any) -> Any:
        original(*args, **named)
        tally.count(changed=True)
        return original(*args, **named)

    return call


def reads(original: Callable[..., Any], tally: Tally, *, a_row: bool) -> Callable[..., Any]:
    """Read numbers of a tensor on the host in each step.

    ``a_row``: one for each request in place of one for all.
    """

    def build(runner: Any, *args: Any, **named: Any) -> Any:
        numbers = runner.query_start_loc.gpu
        for row in range(runner.input_batch.num_reqs if a_row else 1):
            numbers[row].item()
        tally.count(changed=True)
        return original(runner, *args, **named)

    return build
