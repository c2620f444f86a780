"""Whether a build can run a scenario, as far as their files tell."""

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.scenario.scenario import Scenario


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
