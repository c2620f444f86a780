"""A case in the pattern language of scenarios, and a failing one as a scenario file."""

from collections.abc import Sequence
from typing import Any, Final

from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.load import table_lines, text_lines
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch_lab.fuzz.case import FuzzCase, FuzzPhase

_TRIALS: Final = {"contract": 1, "performance": 7, "host_sync": 1}
"""Contract trial 0 has the case's own texts; the rest is the least that a scenario may have."""


def build_waves(case: FuzzCase) -> tuple[Wave, ...]:
    """Say a case as waves that arrive by steps."""
    return tuple(Wave.model_validate(_wave(phase)) for phase in case.acts)


def planned(case: FuzzCase, seed: int) -> tuple[PlannedWave, ...]:
    """Make the requests of a case: those that its scenario file asks in its first trial."""
    return expand(build_waves(case), seed)


def render(scenario: Scenario, case: FuzzCase, why: Sequence[str]) -> str:
    """Write a case as a scenario file.

    Args:
        scenario: Whose engine it was told to; gives all that the case does not say.
        case: What happens.
        why: Lines about what was wrong.
    """
    engine = scenario.engine.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    workload = scenario.workload
    facts = {"version": 1, "fix": NO_FIX, "requires": list(scenario.needed_fixes)}
    facts |= {"harm": scenario.harm, "accelerator": scenario.accelerator}
    facts |= {"since": scenario.since, "until": scenario.until}
    facts |= {"model": scenario.model, "revision": scenario.revision}
    lines = [
        *text_lines("why", why),
        *table_lines(facts),
        "",
        "[engine]",
        *table_lines(engine),
        "",
        "[workload]",
    ]
    lines += table_lines({"seed": workload.seed, "idle_dummy_batches": case.dummy_batches})
    for phase in case.acts:
        lines += ["", "[[workload.waves]]", *table_lines(_wave(phase))]
    lines += [
        "",
        "[workload.generation]",
        *table_lines(workload.generation.model_dump(mode="json")),
    ]
    lines += ["", "[trials]", *table_lines(_TRIALS)]
    lines += ["", "[expect.exactly]", *table_lines(_contracts(scenario))]
    return "\n".join(lines) + "\n"


def _wave(phase: FuzzPhase) -> dict[str, Any]:
    requests = phase.requests
    aborts = [
        {"request": at, "step": one.abort_step}
        for at, one in enumerate(requests)
        if one.abort_step is not None
    ]
    wave = {
        "requests": len(requests),
        "arrival": "steps",
        "at_step": [one.at_step for one in requests],
        "aborts": aborts,
        "token_budget": phase.token_budget,
        "input_tokens": [one.input_tokens for one in requests],
        "output_tokens": [one.output_tokens for one in requests],
        "shared_prefix_tokens": [one.shared_prefix_tokens for one in requests],
    }
    return {key: value for key, value in wave.items() if value not in (None, [])}


def _contracts(scenario: Scenario) -> dict[str, float]:
    """What the scenario expects, but for answers to tasks, of which a case has none."""
    return {
        key: value for key, value in scenario.expect.exactly.items() if key.startswith("contract.")
    }
