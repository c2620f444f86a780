"""Faults that are put into an engine on purpose, to see whether the suite sees them.

They are what taking a fix out cannot be: slowness, and a fault that no release has had. Each can be
planted (``+slow-step`` behind a build's name) and taken out again, on a live engine.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hybridwatch_engine.decode_faults import shifted_decay, unwritten_state
from hybridwatch_engine.host_read import host_read
from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.slow_step import BUSY_PERCENTS, SMALL_PERCENTS, busy_step, slow_step
from hybridwatch_engine.unzeroed_state import unzeroed_state


@dataclass(frozen=True, slots=True)
class Fault:
    """What a reader must know about a planted fault, and the fault itself.

    Attributes:
        id: Name used in labels and in records.
        target: What in vLLM is changed.
        why: What it is for.
        how: What it does.
        make: Patches that put it in.
    """

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
            "that this took: steps last 1.25 times as long, which is 20 % less throughput but for "
            "the scheduler and the server, which are not slowed. On a GPU it waits for the device "
            "first, which costs what would have overlapped, too.",
            make=slow_step,
        ),
        *(_slow_by(percent) for percent in SMALL_PERCENTS),
        *(_busy_by(percent) for percent in BUSY_PERCENTS),
        Fault(
            id="host-read",
            target="execute_model of both model runners "
            "(v1/worker/gpu_model_runner.py, v1/worker/gpu/model_runner.py)",
            why="Whether one read too many is counted, and what it costs: on a GPU a read of one "
            "number is a wait for all that the device still has to do.",
            how="Reads one number of a tensor on the device (`.item()`) before each step.",
            make=host_read,
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
    """The planted faults of one process.

    Args:
        faults: Those there are.
    """

    def __init__(self, faults: Mapping[str, Fault] = FAULTS) -> None:
        self._faults = faults
        self._made: dict[str, PatchSet] = {}

    @property
    def planted(self) -> list[str]:
        """Ids of what is in."""
        return [fault for fault, patches in self._made.items() if patches.in_place]

    def plant(self, wanted: Collection[str]) -> None:
        """Have these in from now on, and no others.

        Raises:
            ValueError: There is no such fault.
        """
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
