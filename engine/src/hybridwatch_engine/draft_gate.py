"""Whether the drafts of a speculating engine reach its scheduler.

With the gate shut nothing is proposed, so every step computes one token of a request: what the same
live engine says without speculation, the reference for greedy tokens.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

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
