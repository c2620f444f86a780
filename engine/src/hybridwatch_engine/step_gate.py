"""Lets a held engine make so many steps, and holds it again.

``POST /pause?mode=keep`` stops the scheduler between two steps. From there
this gate counts calls of ``Scheduler.schedule`` that schedule a token, and pauses the scheduler
again after the last one that was asked for. So a request can reach the engine, or leave it, before
a step that is named by its number, and the same plan gives the same batches every time.
"""

from collections.abc import Callable
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet

STUCK_AFTER: Final = 64
"""Steps in a row that compute nothing although there are requests, after which an engine is stuck.
From then on they count as steps: a plan in which a client gives up can go on."""


class StepGate:
    """The gate of one scheduler."""

    def __init__(self, scheduler: Any) -> None:
        from vllm.v1.core.sched.interface import PauseState
        from vllm.v1.core.sched.scheduler import Scheduler

        self._scheduler = scheduler
        self._running, self._held = PauseState.UNPAUSED, PauseState.PAUSED_ALL
        self._own_budget = scheduler.max_num_scheduled_tokens
        self._left = self._made = self._empty = 0
        self._hooks = PatchSet(
            # Of the class: what else is patched there, before or after, stays in.
            Patch(Scheduler, "schedule", self._counting),
            Patch(Scheduler, "has_finished_requests", self._at_rest),
        )

    def open(self, steps: int) -> dict[str, int]:
        """Let so many steps be made from now on."""
        self._left, self._made, self._empty = steps, 0, 0
        self._hooks.install()
        if steps:
            self._scheduler.set_pause_state(self._running)
        return self.state()

    def state(self) -> dict[str, int]:
        """Say how far the steps are; an engine without requests is held again.

        Returns:
            ``made``: Steps since ``open``. ``left``: Steps to come, 0 once the engine is held.
            ``requests``: Those that the scheduler has, running or waiting.
        """
        requests = sum(self._scheduler.get_request_counts())
        if not requests and self._left:
            self._close()
        return {"made": self._made, "left": self._left, "requests": requests}

    def remove(self) -> dict[str, int]:
        """Take the gate away, so that it costs nothing; a held engine stays held."""
        self._left = 0
        self._hooks.remove()
        return self.state()

    def set_token_budget(self, tokens: int | None) -> dict[str, int]:
        """Let a step compute at most so many tokens; None for what the engine was started with.

        Returns:
            ``tokens``: What holds now. More than the engine was started with cannot be had, since
            its buffers are made for that.
        """
        own = self._own_budget
        self._scheduler.max_num_scheduled_tokens = own if tokens is None else min(tokens, own)
        return {"tokens": self._scheduler.max_num_scheduled_tokens}

    def _close(self) -> None:
        self._left = 0
        self._scheduler.set_pause_state(self._held)

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def schedule(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            scheduled = original(scheduler, *args, **kwargs)
            if self._left and self._is_step(scheduled):
                self._made += 1
                self._left -= 1
                if not self._left:
                    self._close()
            return scheduled

        return schedule

    def _is_step(self, scheduled: Any) -> bool:
        is_empty = not scheduled.total_num_scheduled_tokens
        waits = is_empty and any(self._scheduler.get_request_counts())
        self._empty = self._empty + 1 if waits else 0
        return not is_empty or self._empty > STUCK_AFTER

    def _at_rest(self, original: Callable[[Any], bool]) -> Callable[[Any], bool]:
        """Hide finished requests from a held core.

        It would make a step without tokens for them, and their rows would be empty before the next
        request comes; an engine that was never held lets both happen in one step.
        """

        def has_finished_requests(scheduler: Any) -> bool:
            return scheduler.pause_state != self._held and original(scheduler)

        return has_finished_requests
