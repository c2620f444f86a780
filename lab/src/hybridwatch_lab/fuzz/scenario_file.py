"""A story in the pattern language of scenarios, and a failing one as a scenario file."""

from collections.abc import Sequence
from typing import Any, Final

from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.written import table_lines, text_lines
from hybridwatch_lab.fuzz.story import Act, Story

_TRIALS: Final = {"contract": 1, "performance": 7, "host_sync": 1}
"""Contract trial 0 has the story's own texts; the rest is the least that a scenario may have."""


def waves_of(story: Story) -> tuple[Wave, ...]:
    """Say a story as waves that arrive by steps."""
    return tuple(Wave.model_validate(_wave(act)) for act in story.acts)


def planned(story: Story, seed: int) -> tuple[PlannedWave, ...]:
    """Make the requests of a story: those that its scenario file asks in its first trial."""
    return expand(waves_of(story), seed)


def render(scenario: Scenario, story: Story, why: Sequence[str]) -> str:
    """Write a story as a scenario file.

    Args:
        scenario: Whose engine it was told to; gives all that the story does not say.
        story: What happens.
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
    lines += table_lines({"seed": workload.seed, "idle_dummy_batches": story.dummy_batches})
    for act in story.acts:
        lines += ["", "[[workload.waves]]", *table_lines(_wave(act))]
    lines += [
        "",
        "[workload.generation]",
        *table_lines(workload.generation.model_dump(mode="json")),
    ]
    lines += ["", "[trials]", *table_lines(_TRIALS)]
    lines += ["", "[expect.exactly]", *table_lines(_contracts(scenario))]
    return "\n".join(lines) + "\n"


def _wave(act: Act) -> dict[str, Any]:
    requests = act.requests
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
        "token_budget": act.token_budget,
        "input_tokens": [one.input_tokens for one in requests],
        "output_tokens": [one.output_tokens for one in requests],
        "shared_prefix_tokens": [one.shared_prefix_tokens for one in requests],
    }
    return {key: value for key, value in wave.items() if value not in (None, [])}


def _contracts(scenario: Scenario) -> dict[str, float]:
    """What the scenario expects, but for answers to tasks, of which a story has none."""
    return {
        key: value for key, value in scenario.expect.exactly.items() if key.startswith("contract.")
    }
