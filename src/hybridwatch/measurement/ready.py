"""What a measurement needs of machine, releases and network: found before anything is measured."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.checkpoint import find_checkpoint
from hybridwatch.engines.fitting import misfit
from hybridwatch.engines.preflight import Needs, require_machine
from hybridwatch.errors import BuildError
from hybridwatch.measurement.accuracy.harness import fetch_tasks
from hybridwatch.scenarios.scenario import Scenario


def make_ready(scenario: Scenario, sides: Sequence[BuildRequest], models: Path) -> None:
    """Look whether engines can run here; have a model of the hub, and its tasks' data, on disk.

    A scenario of our own models needs nothing but releases that can serve it.

    Raises:
        MachineError: The machine lacks what its engines need.
        BuildError: The scenario does not apply to a build, or the model cannot be had.
        ScenarioError: A task or its data cannot be had.
    """
    for side in sides:
        if reason := misfit(scenario, side):
            raise BuildError(f"{scenario.id} {reason}")
    builds = {side.spec.name: side.spec for side in sides}
    require_machine(Needs.of(scenario, tuple(builds.values())))
    if not scenario.on_hub:
        return
    for build in builds.values():
        find_checkpoint(scenario, build, models)
    if scenario.accuracy is not None:
        with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
            fetch_tasks(scenario.accuracy.tasks, Path(folder))
