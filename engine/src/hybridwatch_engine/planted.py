"""Planted faults: put into an engine on purpose, to see whether the suite detects them.

They cover what reverting a fix cannot: slowness, and faults that no release has had. Each is
planted (``+slow-step`` behind a build's name) and taken out again on a live engine.

A step that takes a quarter longer lowers tokens per second by a fifth, apart from the cost of a
step outside the model runner. On a GPU a read on the host waits until the device has finished all
queued work, so the host's preparation comes after it and not at the same time. A fault of decode
that is the same with and without graphs does not show when an engine is compared with itself; it
shows against tokens of another engine or of an oracle. Unzeroed states are not wrong while every
slot is fresh: a scenario detects them only if its slots are used again.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from hybridwatch_engine.model_runner import is_step, steps, work_of_steps, worker_class
from hybridwatch_engine.patch import Patch, PatchSet

EXTRA: Final = 0.25
"""Share of its own time that a step lasts longer: 1 / 1.25 is 20 % less throughput."""

SMALL_PERCENTS: Final = (2, 5, 10)
"""Shares of the smaller faults (``slow-step-2`` ...), in percent: how small a change is seen?"""

BUSY_PERCENTS: Final = (5, 10)
"""Shares of the faults that work and do not sleep (``busy-step-5`` ...), in percent."""

SLOW_START_S: Final = 2
"""How much longer an engine takes to load its model (``slow-start-2``), in seconds."""

LEAKED_KIB: Final = (16, 64)
"""What a request leaves behind for ever (``leaked-kib-16`` ...), in KiB."""


class Drag:
    """Sleeps after every call that it wraps, a share of what the call took.

    It sleeps and does not spin, so that other processes lose nothing. A sleep lasts longer than
    requested, on a busy machine much longer than a step of milliseconds; the next sleeps are
    shorter by the difference.

    Args:
        settle: Waits until the device has finished the call's work. Without it a call on a GPU
        returns before its work is done, and a sleep would overlap with the work.
        extra: Share of its own time that a call lasts longer.
        clock: Returns the time, in seconds.
        sleep: Sleeps this many seconds.
    """

    def __init__(
        self,
        settle: Callable[[], None],
        extra: float = EXTRA,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settle, self._clock, self._sleep = settle, clock, sleep
        self._extra = extra
        self._inside = False
        self._owed = 0.0

    def slowed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of the model runner."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # a dummy run makes steps, a step dummy runs: slowed as a whole
                return original(*args, **kwargs)
            self._inside, begin = True, self._clock()
            try:
                answer = original(*args, **kwargs)
                self._settle()
            finally:
                self._inside = False
            self._rest(self._extra * (self._clock() - begin))
            return answer

        return call

    def _rest(self, seconds: float) -> None:
        self._owed += seconds
        if self._owed > 0:
            begin = self._clock()
            self._sleep(self._owed)
            self._owed -= self._clock() - begin


def slow_step(extra: float = EXTRA) -> PatchSet:
    """Patches that make steps slow, in either model runner."""
    import torch

    def settle() -> None:
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

    drag = Drag(settle, extra)
    return PatchSet(*(Patch(*function, drag.slowed) for function in work_of_steps()))


def busy_step(extra: float) -> PatchSet:
    """Patches that make steps more work, in either model runner.

    Time is the processor time of the thread that makes the steps: waiting for a processor adds
    nothing to the extra work, which is the same on a busy machine as on a quiet one.
    """
    drag = Drag(lambda: None, extra, time.thread_time, _work)
    return PatchSet(*(Patch(*function, drag.slowed) for function in work_of_steps()))


def _work(seconds: float) -> None:
    """Keep this thread's processor busy for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def host_read() -> PatchSet:
    """Patches that read a number before each step of either model runner."""
    return PatchSet(*(Patch(*function, _reading) for function in steps()))


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    numbers: list[torch.Tensor] = []

    def execute_model(runner: Any, scheduled: Any, *args: Any, **named: Any) -> Any:
        if is_step(scheduled, named):
            if not numbers:
                numbers.append(torch.zeros((), device=runner.device))
            numbers[0].item()
        return original(runner, scheduled, *args, **named)

    return execute_model


def leaked_memory(size: int) -> PatchSet:
    """Patches by which every request that begins leaves so many bytes that nobody frees."""
    kept: list[bytearray] = []

    def leaking(original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, scheduled: Any, *args: Any, **named: Any) -> Any:
            if is_step(scheduled, named):
                # Written to, since a page that nobody has touched is no memory yet.
                kept.extend(bytearray(b"x") * size for _ in scheduled.scheduled_new_reqs)
            return original(runner, scheduled, *args, **named)

        return execute_model

    return PatchSet(*(Patch(*function, leaking) for function in steps()))


def slow_start(seconds: float) -> PatchSet:
    """Patches by which a worker takes longer to load its model."""

    def delayed(original: Callable[..., Any]) -> Callable[..., Any]:
        def load_model(*args: Any, **kwargs: Any) -> Any:
            time.sleep(seconds)
            return original(*args, **kwargs)

        return load_model

    return PatchSet(Patch(worker_class(), "load_model", delayed))


def halved_cache() -> PatchSet:
    """Patches by which a scheduler gives requests half of the cache's blocks."""
    from vllm.v1.core.block_pool import BlockPool

    def halved(original: Callable[..., int]) -> Callable[..., int]:
        def get_num_free_blocks(pool: Any) -> int:
            kept: int = pool.num_gpu_blocks // 2
            return max(0, original(pool) - kept)

        return get_num_free_blocks

    return PatchSet(Patch(BlockPool, "get_num_free_blocks", halved))


_KERNEL: Final = "selective_state_update"
_SHIFT: Final = 0.5
_BIAS: Final = 7
"""Place of ``dt_bias`` among the kernel's arguments; its state is the first."""


def _shifted(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(*args: Any, **kwargs: Any) -> Any:
        bias = args[_BIAS] + _SHIFT
        return original(*args[:_BIAS], bias, *args[_BIAS + 1 :], **kwargs)

    return update


def _unwritten(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(state: Any, *args: Any, **kwargs: Any) -> Any:
        before = state.clone()
        answer = original(state, *args, **kwargs)
        state.copy_(before)
        return answer

    return update


def shifted_decay() -> PatchSet:
    """Patches by which states decay too fast while tokens are made."""
    return _around_decode(_shifted)


def unwritten_state() -> PatchSet:
    """Patches by which no state is written while tokens are made."""
    return _around_decode(_unwritten)


def _around_decode(make: Callable[[Any], Any]) -> PatchSet:
    from vllm.model_executor.layers.mamba import mamba_mixer2

    return PatchSet(Patch(mamba_mixer2, _KERNEL, make))


def _all_continue(original: Callable[..., Any]) -> Callable[..., Any]:
    """Mark every chunk of a prompt, the first one too, as having an initial state."""

    def compute(builder: Any, *args: Any, **kwargs: Any) -> Any:
        metadata = original(builder, *args, **kwargs)
        begun = metadata.has_initial_states_p
        if begun is None:
            return metadata
        return replace(metadata, has_initial_states_p=begun.new_ones(begun.shape))

    return compute


def unzeroed_state() -> PatchSet:
    """Patches that let new requests begin with what is there."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    builder = BaseMambaAttentionMetadataBuilder
    return PatchSet(Patch(builder, "_compute_common_metadata", _all_continue))


@dataclass(frozen=True, slots=True)
class Fault:
    """What a reader must know about a planted fault, and the fault itself."""

    id: str
    target: str
    why: str
    how: str
    make: Callable[[], PatchSet]


def _busy_by(percent: int) -> Fault:
    return Fault(
        id=f"busy-step-{percent}",
        target=_STEPS,
        why=f"Whether {percent} % more work in a step is seen, also where neighbours on the "
        "machine make every time uncertain.",
        how=f"After whatever the model runner does for a step it keeps its processor busy for "
        f"{percent} % of the processor time that its own thread took for it.",
        make=partial(busy_step, percent / 100),
    )


def _leaked_by(kib: int) -> Fault:
    return Fault(
        id=f"leaked-kib-{kib}",
        target=_EXECUTE,
        why="An engine that keeps a little of every request is right and fast until the machine's "
        f"memory is full: with {kib} KiB a request and ten requests a second, "
        f"{kib * 36_000 / 2**20:.1f} GiB an hour.",
        how=f"Keeps {kib} KiB for each request that a step begins, for as long as the engine "
        "lives.",
        make=partial(leaked_memory, kib * 1024),
    )


_EXECUTE: Final = (
    "execute_model of both model runners "
    "(v1/worker/gpu_model_runner.py, v1/worker/gpu/model_runner.py)"
)


_STEPS: Final = (
    "execute_model, sample_tokens and _dummy_run of both model runners "
    "(v1/worker/gpu_model_runner.py, v1/worker/gpu/model_runner.py)"
)


def _slow_by(percent: int) -> Fault:
    return Fault(
        id=f"slow-step-{percent}",
        target=_STEPS,
        why=f"Whether a slow-down of {percent} % is seen says how much of one could go by unseen.",
        how=f"As `slow-step`, with {percent} % of a step's own time in place of a quarter.",
        make=partial(slow_step, percent / 100),
    )


_DECODE: Final = "model_executor/layers/mamba/mamba_mixer2.py selective_state_update"

FAULTS: Final[dict[str, Fault]] = {
    fault.id: fault
    for fault in (
        Fault(
            id="slow-step",
            target=_STEPS,
            why="Whether a slow-down of a fifth is seen depends on the machine and on the number "
            "of trials. Answers and contracts stay as they are.",
            how="After whatever the model runner does for a step it sleeps a quarter of the time "
            "that this took. Steps last 1.25 times as long, which is 20 % less throughput but for "
            "the scheduler and the server, which are not slowed. On a GPU it waits for the device "
            "first, which costs what would have overlapped, too.",
            make=slow_step,
        ),
        *(_slow_by(percent) for percent in SMALL_PERCENTS),
        *(_busy_by(percent) for percent in BUSY_PERCENTS),
        Fault(
            id=f"slow-start-{SLOW_START_S}",
            target="load_model of the worker (v1/worker/gpu_worker.py)",
            why="A user waits for every start. It must show in the time of the weights, and in no "
            "other phase.",
            how=f"Sleeps {SLOW_START_S} s before the worker loads its model, at each start.",
            make=partial(slow_start, SLOW_START_S),
        ),
        Fault(
            id="host-read",
            target=_EXECUTE,
            why="Whether one read too many is counted, and what it costs: on a GPU a read of one "
            "number is a wait for all that the device still has to do.",
            how="Reads one number of a tensor on the device (`.item()`) before each step.",
            make=host_read,
        ),
        *(_leaked_by(kib) for kib in LEAKED_KIB),
        Fault(
            id="halved-cache",
            target="v1/core/block_pool.py BlockPool.get_num_free_blocks",
            why="Half of the blocks are enough for a light load, whose times stay as they are; "
            "under a heavy one requests wait or are preempted.",
            how="Says that half of the cache's blocks are not free.",
            make=halved_cache,
        ),
        Fault(
            id="unzeroed-state",
            target="v1/attention/backends/mamba_attn.py "
            "BaseMambaAttentionMetadataBuilder._compute_common_metadata",
            why="A pool of blocks so large that no slot is used twice hides whatever a request "
            "leaves in its slot. Speed stays as it is.",
            how="Says of every prompt that its request has a state already, so a new one begins "
            "with what the request before it has left in the slot.",
            make=unzeroed_state,
        ),
        Fault(
            id="shifted-decay",
            target=_DECODE,
            why="What is wrong with graphs and without shows in no comparison of an engine with "
            "itself. This changes some greedy tokens, and leaves most answers right.",
            how="Adds 0.5 to dt_bias while tokens are made, so that states decay too fast.",
            make=shifted_decay,
        ),
        Fault(
            id="unwritten-state",
            target=_DECODE,
            why="As `shifted-decay`, and changes the tokens of most requests.",
            how="Puts the states of every slot back after each decode, so that none is written.",
            make=unwritten_state,
        ),
    )
}


class Planter:
    """The planted faults of one process."""

    def __init__(self, faults: Mapping[str, Fault] = FAULTS) -> None:
        self._faults = faults
        self._made: dict[str, PatchSet] = {}

    @property
    def planted(self) -> list[str]:
        """Ids of what is in."""
        return [fault for fault, patches in self._made.items() if patches.in_place]

    def plant(self, wanted: Collection[str]) -> None:
        """Have these in from now on, and no others."""
        for fault in wanted:
            if fault not in self._faults:
                raise ValueError(f"no fault {fault!r} to plant; known: {', '.join(self._faults)}")
        for fault in wanted:
            if fault not in self._made:
                self._made[fault] = self._faults[fault].make()
        for fault, patches in self._made.items():
            if fault in wanted:
                patches.install()
            else:
                patches.remove()
