"""What the harness steers in a worker: whether drafts come, and dummy batches of an idle engine.

With the gate of drafts shut nothing is proposed, so every step computes one token of a request:
what the same live engine says without speculation, the reference for greedy tokens.

In a data-parallel engine of a mixture-of-experts model every rank must take part in every step: one
without requests runs dummy batches (``v1/engine/core.py``, the busy loop of data parallelism).
Here an engine on its own does the same each time its last request has left, so that what dummy
batches do to cached state can be seen with one process and at a known moment.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.model_runner import requests_in, worker_class
from hybridwatch_engine.patch import Patch, PatchSet


class DraftGate:
    """Lets drafts through, or none."""

    def __init__(self) -> None:
        from vllm.v1.worker.gpu_worker import Worker

        self._hooks = PatchSet(Patch(Worker, "take_draft_token_ids", self._shut))

    def set(self, *, is_open: bool) -> None:
        """Let drafts through from now on, or none."""
        if is_open:
            self._hooks.remove()
        else:
            self._hooks.install()

    def _shut(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def take_draft_token_ids(worker: Any) -> None:
            runner = worker.model_runner
            if getattr(runner, "use_async_scheduling", False):
                # Such a scheduler counts on drafts that it never sees; they cannot be kept back.
                raise RuntimeError("drafts cannot be withheld with asynchronous scheduling")
            original(worker)

        return take_draft_token_ids


@cache
def draft_gate() -> DraftGate:
    """The one of this process."""
    return DraftGate()


class IdleRank:
    """Runs dummy batches whenever the engine has just become idle.

    Attributes:
        batches: How many each time; 0 for none.
    """

    def __init__(self) -> None:
        self.batches = 0
        self._hooks = PatchSet(Patch(worker_class(), "execute_model", self._follow))

    def set(self, batches: int) -> None:
        """Run this many dummy batches from now on."""
        self.batches = batches
        if batches:
            self._hooks.install()
        else:
            self._hooks.remove()

    def _follow(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(worker: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(worker, scheduled, *args, **kwargs)
            # The step without tokens that tells the worker which requests have finished.
            idle = scheduled.total_num_scheduled_tokens == 0
            if idle and requests_in(worker.model_runner) == 0:
                for _ in range(self.batches):
                    worker.execute_dummy_batch()
            return output

        return execute_model


@cache
def idle_rank() -> IdleRank:
    """The one of this process."""
    return IdleRank()
