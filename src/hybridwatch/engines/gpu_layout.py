"""Which GPUs the engines of a scenario get, and what becomes of it where there are too few.

Ranks and pairs take a GPU each. On a machine with one GPU the fault can be shown all the same, by a
stand-in that says so in the record: two engines of a pair share the GPU's memory, and an engine
alone plays the idle rank (``Workload.idle_dummy_batches``). It is decided by the
scenario and the number of GPUs alone.
"""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.workload import Workload
from hybridwatch.system.nvidia import Device

MEMORY: Final = 0.9
"""Share of a GPU's memory that its engines take together; the rest is left to the driver, to graphs
and to libraries. An engine alone takes what is its own default."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the engine of a scenario is laid out on a machine.

    Attributes:
        scenario: What is run: as declared, or its stand-in.
        gpus: What the engine's processes may use, as CUDA numbers them; of a pair the first is the
            prefill engine's and the last the decode engine's. None on a CPU.
        memory_share: Share of a GPU's memory that one engine may take; None for its own default.
    """

    scenario: Scenario
    gpus: tuple[str, ...] = ()
    memory_share: float | None = None
    stand_in: str | None = None


def cuda_numbers(devices: Iterable[Device]) -> tuple[str, ...]:
    """Name GPUs as ``CUDA_VISIBLE_DEVICES`` takes them along the PCI bus.

    By number: not every vLLM can read the longer names. A slice of a GPU has no other than its
    name, and keeps the name that it was given when we were started.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    slices = visible.split(",") if "MIG-" in visible else None
    return tuple(
        slices[at].strip() if slices else str(device.index) for at, device in enumerate(devices)
    )


def arrange(scenario: Scenario, gpus: Sequence[str], engines: int = 1) -> Arrangement:
    """Lay a scenario out.

    ``gpus`` are none for a build that computes on a CPU. ``engines`` are those of the session that
    are alive at the same time on the same GPUs; the two of a pair count as one.
    """
    if not gpus:
        return Arrangement(scenario)
    ranks, pair = scenario.engine.data_parallel_size, scenario.engine.disaggregated
    used = tuple(gpus[: 2 if pair else ranks])
    if pair and len(used) < 2:
        text = f"one GPU: two engines with {_share(2 * engines):g} of its memory each"
        return Arrangement(scenario, used, _share(2 * engines), text)
    if len(used) < ranks:
        alone = _idle_rank_alone(scenario)
        batches = alone.workload.idle_dummy_batches
        text = f"one GPU: an engine alone runs {batches} dummy batches whenever it becomes idle"
        return Arrangement(alone, used[:1], _share(engines) if engines > 1 else None, text)
    return Arrangement(scenario, used, _share(engines) if engines > 1 else None)


def _share(engines: int) -> float:
    """Rounded down: two of it must not be more than there is."""
    return math.floor(100 * MEMORY / engines) / 100


def _idle_rank_alone(scenario: Scenario) -> Scenario:
    """The same requests to one engine that does between them what a rank without work does.

    As many dummy batches as the longest answer has tokens: so long another rank would be at work.
    """
    workload = scenario.workload
    waves = (*workload.prelude, *workload.waves)
    changed: dict[str, object] = {
        "idle_dummy_batches": max(wave.output_tokens.lengths[-1] for wave in waves),
        "prelude": _of_no_rank(workload.prelude),
        "waves": _of_no_rank(workload.waves),
    }
    engine = scenario.engine.model_copy(update={"data_parallel_size": 1})
    alone: Workload = workload.model_copy(update=changed)
    return scenario.model_copy(update={"engine": engine, "workload": alone})


def _of_no_rank(waves: Sequence[Wave]) -> tuple[Wave, ...]:
    return tuple(wave.model_copy(update={"rank": None}) for wave in waves)
