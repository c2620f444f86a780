"""Holds the answers of a contract trial against those of an oracle outside the engine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from hybridwatch.measurement.accuracy.oracle import load, path_of, wrong_among
from hybridwatch.metrics.catalogue import WRONG_ANSWERS
from hybridwatch.records.completion import Completion, near_tie_within
from hybridwatch.records.run import Sample
from hybridwatch.scenarios.expansion import PlannedWave
from hybridwatch.scenarios.scenario import Scenario

_OUTDATED: Final = (
    "the oracle was asked other requests than these: run hybridwatch oracle make {model} {scenario}"
)


class Checked(NamedTuple):
    """What an oracle says of a trial.

    Attributes:
        answered: The answers, each marked as wrong if it is.
        samples: The count of the wrong ones; empty without an oracle.
        unsupported: Why there is no count, where there should be one.
    """

    answered: tuple[Completion, ...]
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}  # noqa: RUF012 - never written to


def checked(
    home: Path,
    scenario: Scenario,
    number: int,
    waves: Sequence[PlannedWave],
    answered: tuple[Completion, ...],
) -> Checked:
    """Count the wrong answers of a trial, if its scenario has an oracle that goes so far.

    Args:
        home: Holds the folder of oracles.
        scenario: What was run.
        number: Of the trial, from 0.
        waves: What was asked.
        answered: What the engine said.

    Raises:
        MeasurementError: The file of the oracle cannot be understood.
    """
    oracle = load(path_of(home, scenario.answered_by))
    if oracle is None or number >= len(oracle.trials):
        return Checked(answered)
    wrong = _wrong(waves, answered, oracle.trials[number], scenario.engine.dtype)
    if wrong is None:
        why = _OUTDATED.format(model=scenario.model, scenario=scenario.answered_by)
        return Checked(answered, unsupported={WRONG_ANSWERS: why})
    marked = tuple(
        replace(one, is_wrong=bool(one.is_wrong) or is_wrong)
        for one, is_wrong in zip(answered, wrong, strict=True)
    )
    return Checked(marked, (Sample(WRONG_ANSWERS, (float(sum(wrong)),)),))


def _wrong(
    waves: Sequence[PlannedWave],
    answered: Sequence[Completion],
    right: Sequence[Completion],
    dtype: str,
) -> tuple[bool, ...] | None:
    """Say of each answer whether it is wrong; of one that no oracle can know, it is not."""
    planned = [(wave, request) for wave in waves for request in wave.requests]
    if not len(planned) == len(answered) == len(right):
        return None
    known = [at for at, (_, request) in enumerate(planned) if request.has_right_answer]
    found = wrong_among(
        [answered[at] for at in known],
        [right[at] for at in known],
        [not planned[at][0].continues for at in known],
        near_tie_within({dtype}),
    )
    if found is None:
        return None
    wrong = {at for at, is_wrong in zip(known, found, strict=True) if is_wrong}
    return tuple(at in wrong for at in range(len(answered)))
