"""Where a scenario's model lies: ours, one with made-up weights, or one of the hub."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engine.builds import BuildSpec
from hybridwatch.errors import BuildError
from hybridwatch.scenario.scenario import Scenario

FETCH_TIMEOUT_S: Final = 4 * 3600.0
"""Tens of gigabytes over a slow line; the hub's client itself gives up on one that is mute."""

_CONFIGURATIONS: Final = "configs"
_LETTERS: Final = "tiny-hybrid"
"""A model whose tokens are bytes: its tokenizer serves wherever it does not matter what is said,
since these ids are in every vocabulary."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on this machine's disk.

    Attributes:
        folder: Holds its configuration, and its weights unless they are made up.
        tokenizer: Folder of the tokenizer; None for the model's own.
        revision: Commit of a model of the hub; None for ours.
    """

    folder: Path
    tokenizer: Path | None = None
    revision: str | None = None


def checkpoint_of(scenario: Scenario, build: BuildSpec, models: Path) -> Checkpoint:
    """Find a scenario's model, and fetch it from the hub when it is there and not here.

    Args:
        scenario: Names the model.
        build: An installed build, whose client asks the hub.
        models: Folder of our models.

    Raises:
        BuildError: There is no such model, or the hub cannot be reached and has left no copy here.
    """
    if scenario.on_hub:
        return _fetched(scenario, build)
    if scenario.engine.load_format == "dummy":
        folder = _ours(scenario, models / _CONFIGURATIONS)
        return Checkpoint(folder, tokenizer=models / _LETTERS)
    return Checkpoint(_ours(scenario, models))


def _ours(scenario: Scenario, models: Path) -> Path:
    folder = models / scenario.model
    if not folder.is_dir():
        raise BuildError(f"{scenario.id}: model: expected a folder {scenario.model!r} in {models}")
    return folder


def _fetched(scenario: Scenario, build: BuildSpec) -> Checkpoint:
    name = scenario.model
    command = [str(build.interpreter), "-m", "hybridwatch_engine.hub", name]
    command += [scenario.revision] if scenario.revision is not None else []
    # The harness's own paths must not reach into the engine's world.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended: int | None = None
    try:
        done = subprocess.run(
            command,
            env=environment,
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
