"""The probe of progress: requests that are preempted, stall or starve, and unwritten cached blocks.

It watches the scheduler, so it runs in the scheduler's process, which may be another than the
workers' (``scheduler_side``). It does not depend on the clock: a request may wait for others for
any time; one that is computed again and again without getting further has stalled.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe
from hybridwatch_engine.step_gate import STUCK_AFTER


@dataclass(slots=True)
class ProgressCounts:
    """Totals since the probe was started.

    Attributes:
        scheduler_steps: Engine steps that computed a token.
        preemptions: Times that a running request lost its cache blocks and had to begin again.
        requests_stalled: Requests that got tokens computed in ``STUCK_AFTER`` steps and had no more
            of them at the end than ever before; and those that were waiting or running when as many
            steps in a row computed nothing for any request. (A preempted one computes its tokens
            again, in as many steps as before; no scenario's prompt needs so many.)
        requests_starved: Requests that ``STUCK_AFTER`` steps in a row gave no token, though tokens
            of the budget were left over, a row was free and so were blocks for all of it, while
            others got tokens. Under ``mamba_cache_mode="align"`` a chunk ends with a block, and
            what others leave may never be a whole one (vllm#45414).
        unwritten_blocks_cached: Blocks left in the prefix cache for tokens that no step has
            computed: their request was preempted by the very step that was to compute them.
    """

    scheduler_steps: int = 0
    preemptions: int = 0
    requests_stalled: int = 0
    requests_starved: int = 0
    unwritten_blocks_cached: int = 0


@dataclass(slots=True)
class _Course:
    """How far a request has come.

    Attributes:
        best: Most tokens that it has ever had computed.
        idle: Steps for it since then.
        stalled: Whether it was counted.
        left_out: Steps in a row that had room for it and gave it nothing.
        starved: Whether it was counted.
    """

    best: int = 0
    idle: int = 0
    stalled: bool = False
    left_out: int = 0
    starved: bool = False


@dataclass(slots=True)
class _StepState:
    """What belongs to the steps seen so far.

    Attributes:
        courses: By request.
        registered: Blocks that the step in the making has put into the prefix cache, with their
            hashes, by request.
        empty: Steps in a row that computed nothing although there were requests.
    """

    courses: dict[str, _Course] = field(default_factory=dict)
    registered: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    empty: int = 0


class ProgressProbe(CountingProbe[ProgressCounts]):
    """Watches one scheduler while it is on."""

    def __init__(self) -> None:
        super().__init__(ProgressCounts)
        self._state = _StepState()

    def _forget(self) -> None:
        self._state = _StepState()

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.core.block_pool import BlockPool
        from vllm.v1.core.sched.scheduler import Scheduler

        return PatchSet(
            Patch(Scheduler, "schedule", self._see_step),
            Patch(Scheduler, "_preempt_request", self._see_preemption),
            Patch(BlockPool, "cache_full_blocks", self._see_registration),
        )

    def _see_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def schedule(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            self._state.registered.clear()
            before = self._watch(_computed, scheduler)
            scheduled = original(scheduler, *args, **kwargs)
            self._watch(self._count, scheduler, scheduled, before)
            return scheduled

        return schedule

    def _see_preemption(self, original: Callable[..., None]) -> Callable[..., None]:
        def preempt(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            self._counts.preemptions += 1
            original(scheduler, *args, **kwargs)

        return preempt

    def _see_registration(self, original: Callable[..., None]) -> Callable[..., None]:
        def cache_full_blocks(pool: Any, *args: Any, **kwargs: Any) -> None:
            original(pool, *args, **kwargs)
            self._watch(self._note, **kwargs)

        return cache_full_blocks

    def _note(
        self, request: Any, blocks: Any, num_cached_blocks: int, num_full_blocks: int, **_: Any
    ) -> None:
        noted = self._state.registered.setdefault(request.request_id, [])
        for block in blocks[num_cached_blocks:num_full_blocks]:
            if block.block_hash is not None and not block.is_null:
                noted.append((block, block.block_hash))

    def _count(self, scheduler: Any, scheduled: Any, before: dict[str, int]) -> None:
        tokens: dict[str, int] = scheduled.num_scheduled_tokens
        self._counts.scheduler_steps += bool(tokens)
        for name, request in _requests(scheduler):
            if name in tokens:
                self._advance(name, request.num_computed_tokens)
            elif before.get(name) and not request.num_computed_tokens:
                # Preempted by this step: what it registered for the request is not computed.
                registered = self._state.registered.get(name, ())
                self._counts.unwritten_blocks_cached += sum(
                    block.block_hash == hash_ for block, hash_ in registered
                )
        self._count_standstill(scheduler, computed=bool(tokens))
        self._count_left_out(scheduler, tokens)

    def _advance(self, name: str, computed: int) -> None:
        course = self._state.courses.setdefault(name, _Course())
        if computed > course.best:
            course.best, course.idle = computed, 0
            return
        course.idle += 1
        self._stall(course, course.idle)

    def _count_standstill(self, scheduler: Any, *, computed: bool) -> None:
        """Count requests for which nothing is done, but those paused or waiting for others."""
        from vllm.v1.core.sched.interface import PauseState

        names = [name for name, request in _requests(scheduler) if _could_go_on(request)]
        if computed or not names or scheduler.pause_state != PauseState.UNPAUSED:
            self._state.empty = 0
            return
        self._state.empty += 1
        for name in names:
            self._stall(self._state.courses.setdefault(name, _Course()), self._state.empty)

    def _count_left_out(self, scheduler: Any, tokens: dict[str, int]) -> None:
        """Count those that others' tokens kept from theirs, step by step."""
        has_left = 0 < sum(tokens.values()) < scheduler.max_num_scheduled_tokens
        passed_over = {one.request_id for one in _next_ones(scheduler)} if has_left else set()
        for name, request in _requests(scheduler):
            course = self._state.courses.setdefault(name, _Course())
            is_left_out = name in passed_over - tokens.keys() and _has_blocks(scheduler, request)
            course.left_out = course.left_out + 1 if is_left_out else 0
            if course.left_out >= STUCK_AFTER and not course.starved:
                course.starved = True
                self._counts.requests_starved += 1

    def _stall(self, course: _Course, steps: int) -> None:
        if steps >= STUCK_AFTER and not course.stalled:
            course.stalled = True
            self._counts.requests_stalled += 1


def _requests(scheduler: Any) -> Iterable[tuple[str, Any]]:
    return list(scheduler.requests.items())


def _computed(scheduler: Any) -> dict[str, int]:
    """Tokens that each request has computed."""
    return {name: request.num_computed_tokens for name, request in _requests(scheduler)}


def _next_ones(scheduler: Any) -> Iterator[Any]:
    """Give the running requests with tokens to compute, and the first that waits for a free row.

    Without chunks a prompt waits for a step that takes all of it, and rightly so; the first may
    wait for a transfer, and a pause keeps new ones out.
    """
    from vllm.v1.core.sched.interface import PauseState

    if not scheduler.scheduler_config.enable_chunked_prefill:
        return
    for request in scheduler.running:
        due = request.num_tokens_with_spec + request.num_output_placeholders
        if due > request.num_computed_tokens:
            yield request
    has_row = len(scheduler.running) < scheduler.max_num_running_reqs
    if scheduler.waiting and has_row and scheduler.pause_state == PauseState.UNPAUSED:
        first = scheduler.waiting.peek_request()
        if _could_go_on(first):
            yield first


def _has_blocks(scheduler: Any, request: Any) -> bool:
    """Whether there are free blocks for a whole request, those that it holds already included."""
    sizes = [group.kv_cache_spec.block_size for group in scheduler.kv_cache_config.kv_cache_groups]
    most = request.num_tokens_with_spec + scheduler.num_spec_tokens
    needed = sum(most // size + 1 + scheduler.num_spec_tokens for size in sizes)
    return bool(scheduler.kv_cache_manager.block_pool.get_num_free_blocks() >= needed)


def _could_go_on(request: Any) -> bool:
    """Whether nothing outside the scheduler, such as a transfer, keeps a request back."""
    return request.status.name in {"WAITING", "RUNNING", "PREEMPTED"}
