"""Switches mutants of the scheduler, which runs in another process than the workers.

What the harness calls on every worker passes through the engine's core, where the scheduler is. So
the calls that switch and count mutants are answered there too, as if by one more worker.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.mutants.board import mutant_board
from hybridwatch_engine.patch import Patch, PatchSet


def _answered_here_too(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def collective_rpc(
        core: Any, method: Any, timeout: Any = None, args: Any = (), kwargs: Any = None
    ) -> list[Any]:
        answers = original(core, method, timeout, args, kwargs)
        if method == "hybridwatch_mutate":
            return [*answers, mutant_board("scheduler").switch(*args)]
        if method == "hybridwatch_mutant_counts":
            return [*answers, mutant_board("scheduler").counts()]
        return answers

    return collective_rpc


@cache
def scheduler_side() -> PatchSet:
    """The hook, made once per process.

    Raises:
        AttributeError: This release has renamed the core.
    """
    from vllm.v1.engine.core import EngineCore

    return PatchSet(Patch(EngineCore, "collective_rpc", _answered_here_too))
