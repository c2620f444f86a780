"""What a measurement needs from the network: found before anything is measured, not in between."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.engine.checkpoint import checkpoint_of
from hybridwatch.quality.harness import fetch_tasks
from hybridwatch.scenario.scenario import Scenario


def make_ready(scenario: Scenario, sides: Iterable[BuildRequest], models: Path) -> None:
    """Have a model of the hub, and the data of its tasks, on this machine's disk.

    A scenario of our own models needs nothing.

    Args:
        scenario: What will be run.
        sides: Installed builds.
        models: Folder of our models.

    Raises:
        BuildError: The model cannot be had.
        ScenarioError: A task or its data cannot be had.
    """
    if not scenario.on_hub:
        return
    for build in {side.spec.name: side.spec for side in sides}.values():
        checkpoint_of(scenario, build, models)
    if scenario.accuracy is not None:
        with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
            fetch_tasks(scenario.accuracy.tasks, Path(folder))
