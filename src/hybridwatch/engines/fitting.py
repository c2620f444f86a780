"""Whether and how a build can run a scenario, as far as their files tell."""

from dataclasses import replace
from typing import Final

from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.scenarios.scenario import Scenario, list_numbers


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

    Where neither says so, it is the one that the release runs hybrid models on by itself on a GPU.
    On a CPU, where a release left alone takes V1, that is asked for, unless the scenario is about a
    fault that V1 alone can have.
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
