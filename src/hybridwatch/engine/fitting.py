"""Whether and how a build can run a scenario, as far as their files tell."""

from typing import Final

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.scenario.scenario import Scenario, numbers_of


def misfit(scenario: Scenario, side: BuildRequest) -> str | None:
    """Say why a scenario does not apply to a build.

    Returns:
        What the scenario needs and the build is, as half a sentence; None if it applies.
    """
    spec = side.spec
    if not scenario.fits(spec.accelerator):
        needs = f"needs the accelerator {scenario.accelerator}"
        return f"{needs}, and {side.label} is a build for {spec.accelerator}"
    wanted = scenario.engine.model_runner
    if side.model_runner and wanted and wanted != side.model_runner:
        return f"needs model runner {wanted.upper()}, and {side.label} runs another"
    if scenario.starts_on(spec.release):
        return None
    bounds = {"newer": scenario.since, "older": scenario.until}
    needs = " and ".join(f"{bound} or {way}" for way, bound in bounds.items() if bound)
    return f"needs vLLM {needs}, and {side.label} is {spec.release}"


_V2_SINCE: Final = (0, 29, 0)
"""First release that runs hybrid models on V2 by itself, where it has Triton: on a GPU."""


def model_runner_of(scenario: Scenario, side: BuildRequest) -> str:
    """Say which model runner, ``v1`` or ``v2``, a build runs a scenario on."""
    chosen = side.model_runner or scenario.engine.model_runner
    if chosen is not None:
        return chosen
    by_itself = side.spec.accelerator == "cuda" and numbers_of(side.spec.release) >= _V2_SINCE
    return "v2" if by_itself else "v1"
