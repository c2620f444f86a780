"""Where a scenario's model lies: ours, one with made-up weights, or one of the hub."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import layers

FETCH_TIMEOUT_S: Final = 4 * 3600.0
"""Tens of gigabytes over a slow line; the hub's client itself gives up on a silent one."""

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


def find_checkpoint(scenario: Scenario, build: BuildSpec, models: Path) -> Checkpoint:
    """Find a scenario's model, and fetch it from the hub when it is there and not here.

    Raises:
        BuildError: There is no such model, or the hub cannot be reached and has left no copy here.
    """
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


def model_folder(scenario: Scenario, name: str, models: Path, key: str = "model") -> Path:
    """Find a model of ours, or of the home; messages name the scenario's ``key``.

    Raises:
        BuildError: There is none, or the home has one with the name of a shipped one.
    """
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
