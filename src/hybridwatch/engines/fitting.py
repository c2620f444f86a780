"""Whether and how a build can run a scenario: its model runner, its model, its GPUs.

Ranks and pairs take a GPU each. On a machine with one GPU a stand-in, which the record names, shows
the fault: two engines of a pair share the memory, an engine alone plays the idle rank. Nothing
stands in for the workers of tensor or pipeline parallelism.
"""

import json
import math
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import BuildRequest, BuildSpec, parse_label
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario, list_numbers
from hybridwatch.scenarios.workload import Workload
from hybridwatch.system.home import foreign_environment, layers
from hybridwatch.system.nvidia import Device
from hybridwatch.system.python_command import python_command


def misfit(scenario: Scenario, side: BuildRequest) -> str | None:
    """Say why a scenario does not apply to a build, as half a sentence; None if it applies."""
    spec = side.spec
    if not scenario.fits(spec.accelerator):
        needs = f"needs the accelerator {scenario.accelerator}"
        return f"{needs}, and {side.label} is a build for {spec.accelerator}"
    if not scenario.starts_on(spec.release):
        bounds = {"newer": scenario.since, "older": scenario.until}
        needs = " and ".join(f"{bound} or {way}" for way, bound in bounds.items() if bound)
        return f"needs vLLM {needs}, and {side.label} is {spec.release}"
    wanted = "v1" if scenario.needs_v1 else scenario.engine.model_runner
    if side.model_runner and wanted and wanted != side.model_runner:
        return f"needs model runner {wanted.upper()}, and {side.label} runs another"
    return None


_V2_SINCE: Final = (0, 29, 0)
"""First release that runs hybrid models on V2 by itself, where it has Triton: on a GPU."""


def find_model_runner(scenario: Scenario, side: BuildRequest) -> str:
    """Say which model runner, ``v1`` or ``v2``, a build runs a scenario on.

    Left open, it is what the release runs hybrid models on by itself on a GPU. A CPU is made to,
    unless the scenario is about a fault that V1 alone can have.
    """
    chosen = side.model_runner or scenario.engine.model_runner
    if chosen is not None:
        return chosen
    if list_numbers(side.spec.release) < _V2_SINCE or scenario.needs_v1:
        return "v1"
    about_v1 = side.spec.accelerator == "cpu" and scenario.is_about_v1
    return "v1" if about_v1 else "v2"


def on_usual_runner(scenario: Scenario, side: BuildRequest) -> BuildRequest:
    """Give a build whose label names the model runner, where it is not its engine's own choice."""
    asked_for = side.spec.accelerator == "cpu" and list_numbers(side.spec.release) >= _V2_SINCE
    if not asked_for or side.model_runner or find_model_runner(scenario, side) == "v1":
        return side
    return replace(parse_label(f"{side.label}+v2"), line=side.line)


FETCH_TIMEOUT_S: Final = 4 * 3600.0
"""Tens of gigabytes over a slow line; the hub's client itself gives up on a silent one."""

_CONFIGURATIONS: Final = "configs"
_LETTERS: Final = "tiny-hybrid"
"""A model whose tokens are bytes: its tokenizer serves wherever it does not matter what is said,
since these ids are in every vocabulary."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on disk, and another's tokenizer; ``revision`` is a commit of the hub."""

    folder: Path
    tokenizer: Path | None = None
    revision: str | None = None


def find_checkpoint(scenario: Scenario, build: BuildSpec, models: Path) -> Checkpoint:
    """Find a scenario's model, and fetch it from the hub when it is there and not here."""
    if scenario.on_hub:
        return _fetched(scenario, build)
    folder = find_folder(scenario, models)
    if scenario.engine.load_format == "dummy":
        return Checkpoint(folder, tokenizer=model_folder(scenario, _LETTERS, models))
    return Checkpoint(folder)


def find_folder(scenario: Scenario, models: Path) -> Path:
    """Find the folder of a scenario's model, which is none of the hub's."""
    made_up = scenario.engine.load_format == "dummy"
    name = f"{_CONFIGURATIONS}/{scenario.model}" if made_up else scenario.model
    return model_folder(scenario, name, models)


def find_draft(scenario: Scenario, models: Path) -> Path | None:
    """Find the folder of the model that drafts for a scenario's; ``None`` without one."""
    speculation = scenario.engine.speculation
    if speculation is None or speculation.model is None:
        return None
    return model_folder(scenario, speculation.model, models, "engine.speculation.model")


def find_adapters(scenario: Scenario, models: Path) -> tuple[Path, ...]:
    """Find the folders of the adapters that a scenario's requests may name."""
    key = "engine.lora_modules"
    named = scenario.engine.lora_modules
    return tuple(model_folder(scenario, name, models, key) for name in named)


def model_folder(scenario: Scenario, name: str, models: Path, key: str = "model") -> Path:
    """Find a model of ours, or of the home; messages name the scenario's ``key``."""
    places = layers(models)
    found = [place / name for place in places if (place / name).is_dir()]
    if not found:
        where = " or ".join(map(str, reversed(places)))
        raise BuildError(f"{scenario.id}: {key}: expected a folder {name!r} in {where}")
    if len(found) > 1:
        raise BuildError(
            f"{scenario.id}: {key}: expected one folder {name!r}, found {found[0]}, which is "
            f"shipped, and {found[1]}; rename yours"
        )
    return found[0]


def _fetched(scenario: Scenario, build: BuildSpec) -> Checkpoint:
    name = scenario.model
    words = [name] if scenario.revision is None else [name, scenario.revision]
    command = python_command("-m", "hybridwatch_engine.hub", *words, python=build.interpreter)
    ended: int | None = None
    try:
        done = subprocess.run(
            command,
            env=foreign_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # progress goes past us
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
        ended = done.returncode
        answer: dict[str, str] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        answer = {"error": f"it was not here after {FETCH_TIMEOUT_S:.0f} s"}
    except ValueError:
        answer = {"error": f"the hub's client ended with status {ended}"}
    if "path" not in answer:
        why = answer.get("error", "no reason given")
        raise BuildError(f"{scenario.id}: model {name}: it cannot be had from the hub: {why}")
    return Checkpoint(Path(answer["path"]), revision=answer["revision"])


MEMORY: Final = 0.9
"""Share of a GPU's memory that its engines take together; the rest is left to the driver, to graphs
and to libraries. An engine alone takes what is its own default."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the engine of a scenario, or its stand-in, is laid out on a machine.

    ``gpus`` are as CUDA numbers them, none on a CPU; of a pair the first prefills, the last
    decodes. ``memory_share`` is that of a GPU which one engine may take; ``None`` for its own
    default.
    """

    scenario: Scenario
    gpus: tuple[str, ...] = ()
    memory_share: float | None = None
    stand_in: str | None = None


def cuda_numbers(devices: Iterable[Device]) -> tuple[str, ...]:
    """Name GPUs as ``CUDA_VISIBLE_DEVICES`` takes them along the PCI bus.

    By number: not every vLLM can read names. A slice has only the name that we were given.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    slices = visible.split(",") if "MIG-" in visible else None
    return tuple(
        slices[at].strip() if slices else str(device.index) for at, device in enumerate(devices)
    )


def arrange(scenario: Scenario, gpus: Sequence[str], engines: int = 1) -> Arrangement:
    """Lay a scenario out, a pair as one of ``engines`` that are alive on the same GPUs, if any."""
    if not gpus:
        return Arrangement(scenario)
    workers, pair = scenario.engine.workers, scenario.engine.disaggregated
    if len(gpus) < workers:
        raise BuildError(
            f"{scenario.id}: engine.tensor_parallel_size times engine.pipeline_parallel_size: "
            f"expected at most as many as there are GPUs, {len(gpus)}, found {workers}"
        )
    ranks = scenario.engine.data_parallel_size * workers
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
    """The same requests to one engine that runs dummy batches while another rank would work."""
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
