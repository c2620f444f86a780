"""Several forms of a running engine, measured in turn on the same batch.

A form is a set of patches that goes in for a stretch of steps and comes out again. Every other
round goes through the forms backwards, so whatever drifts hits all of them alike.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.host_sync import HostSyncProbe

from hybridwatch_engine_lab.studies.interval import paired_ratio
from hybridwatch_engine_lab.studies.stepping import STEPS, StepStretch, stretch

Forms = Mapping[str, PatchSet]
"""By name; one without patches is the engine as it is."""


def time_stretches(
    engine: Any, forms: Forms, rows: int, rounds: int
) -> dict[str, list[StepStretch]]:
    """Steps of each form, a stretch for each round; one more before them warms up."""
    found: dict[str, list[StepStretch]] = {name: [] for name in forms}
    for number in range(-1, rounds):
        for name in forms if number % 2 else reversed(list(forms)):
            forms[name].install()
            try:
                made = stretch(engine, f"{number}-{name}", rows)
            finally:
                forms[name].remove()
            if number >= 0:
                found[name].append(made)
    return found


def count_syncs(engine: Any, forms: Forms, rows: int) -> dict[str, float]:
    """Host synchronisations per step of each form, over equally many steps of the same batch."""
    return {name: _syncs(engine, patches, name, rows) for name, patches in forms.items()}


def _syncs(engine: Any, patches: PatchSet, name: str, rows: int) -> float:
    probe = HostSyncProbe()
    patches.install()
    probe.start()
    try:
        stretch(engine, f"syncs-{name}", rows)
    finally:
        probed = probe.stop()
        patches.remove()
    # The last steps are the fewer requests of an engine that schedules ahead.
    counts = probed["reads_per_step"][:STEPS]
    return float(sum(counts) / len(counts))


def compute_speeds(found: Mapping[str, Sequence[StepStretch]]) -> dict[str, dict[str, float]]:
    """Of each form, medians over rounds: seconds of a step and tokens per second."""
    return {
        name: {
            "step_seconds": median(median(one.seconds) for one in stretches),
            "tokens_per_second": median(one.tokens_per_second for one in stretches),
        }
        for name, stretches in found.items()
    }


def step_time_ratio(
    found: Mapping[str, Sequence[StepStretch]], contender: str, baseline: str
) -> dict[str, float]:
    """How long a step of one form lasts against one of another, round by round."""
    of = {name: [median(one.seconds) for one in found[name]] for name in (contender, baseline)}
    return paired_ratio(of[contender], of[baseline]).to_json()
