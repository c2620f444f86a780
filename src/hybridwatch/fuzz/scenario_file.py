"""A story in the pattern language of scenarios, and a failing one as a scenario file."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hybridwatch.fuzz.story import Act, Story
from hybridwatch.plain_text import visible
from hybridwatch.scenario.expansion import PlannedWave, expand
from hybridwatch.scenario.fixes import NO_FIX
from hybridwatch.scenario.pattern import Wave
from hybridwatch.scenario.scenario import Scenario

_WIDTH: Final = 100
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
    lines = [*_why(why), *_keys(facts), "", "[engine]", *_keys(engine), "", "[workload]"]
    lines += _keys({"seed": workload.seed, "idle_dummy_batches": story.dummy_batches})
    for act in story.acts:
        lines += ["", "[[workload.waves]]", *_keys(_wave(act))]
    lines += ["", "[workload.generation]", *_keys(workload.generation.model_dump(mode="json"))]
    lines += ["", "[trials]", *_keys(_TRIALS)]
    lines += ["", "[expect.exactly]", *_keys(_contracts(scenario))]
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


def _why(lines: Sequence[str]) -> Iterator[str]:
    yield 'why = """'
    for line in lines:
        safe = visible(line).replace("\\", "\\\\").replace('"', '\\"')
        yield from textwrap.wrap(safe, _WIDTH, break_long_words=False) or [""]
    yield '"""'


def _keys(table: Mapping[str, Any]) -> list[str]:
    """The keys of a table that has no tables in it; what nobody set is left out."""
    return [
        f"{_key(key)} = {_value(value)}"
        for key, value in table.items()
        if value is not None and value != []
    ]


def _key(key: str) -> str:
    return json.dumps(key) if "." in key else key


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)  # numbers, truth values and texts are written alike in both
