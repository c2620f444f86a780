"""What a measurement needs from releases and the network: found before anything is measured."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.engine.checkpoint import checkpoint_of
from hybridwatch.errors import BuildError
from hybridwatch.quality.harness import fetch_tasks
from hybridwatch.scenario.scenario import Scenario


def make_ready(scenario: Scenario, sides: Sequence[BuildRequest], models: Path) -> None:
    """Have a model of the hub, and the data of its tasks, on this machine's disk.

    A scenario of our own models needs nothing but releases that can serve it.

    Args:
        scenario: What will be run.
        sides: Installed builds.
        models: Folder of our models.

    Raises:
        BuildError: A release is too old for the scenario, or the model cannot be had.
        ScenarioError: A task or its data cannot be had.
    """
    for side in sides:
        if not scenario.starts_on(side.spec.release):
            raise BuildError(
                f"{scenario.id} needs vLLM {scenario.since} or newer; {side.label} is "
                f"{side.spec.release}, whose engine does not come up for it"
            )
    if not scenario.on_hub:
        return
    for build in {side.spec.name: side.spec for side in sides}.values():
        checkpoint_of(scenario, build, models)
    if scenario.accuracy is not None:
        with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
            fetch_tasks(scenario.accuracy.tasks, Path(folder))
