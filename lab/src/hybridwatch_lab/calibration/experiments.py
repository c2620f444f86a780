"""Every experiment, in the order of the document."""

from collections.abc import Callable, Mapping
from typing import Final

from hybridwatch_lab.calibration import (
    accuracy,
    comparisons,
    noisy_machine,
    online,
    onsets,
    places,
    reports,
    sequential_runs,
    speed,
    synthetic,
    telling,
    two_modes,
    two_runs,
)
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection
from hybridwatch_lab.calibration.noise import Array

EXPERIMENTS: Final[tuple[Callable[[Laboratory], LabSection], ...]] = (
    reports.of_equal_sides,
    comparisons.of_one_metric,
    comparisons.beside_the_field,
    comparisons.over_the_plane,
    comparisons.of_promises,
    two_runs.of_two_runs,
    noisy_machine.of_recorded_sessions,
    sequential_runs.of_repeated_looks,
    accuracy.of_answers,
    online.on_known_noise,
    synthetic.on_finished_series,
    places.of_places,
    onsets.of_onsets,
    telling.of_telling,
)
"""Those that need nothing from outside and tell the same on any machine."""


def perform(lab: Laboratory, histories: Mapping[str, Array]) -> tuple[LabSection, ...]:
    """Measure every rule.

    Args:
        lab: Seed, effort, and whom to tell.
        histories: Real series by name, for their noise; none leaves that experiment out.
    """
    # First, in a process as fresh as that of a user: later ones have memory at hand.
    time = speed.of_detector(lab)
    sections = tuple(experiment(lab) for experiment in EXPERIMENTS)
    real = (online.on_real_noise, two_modes.on_held_back) if histories else ()
    return (*sections, *(experiment(lab, histories) for experiment in real), time)
