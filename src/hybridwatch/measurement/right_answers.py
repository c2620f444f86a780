"""Compares an engine's answers with an oracle's, without probes, references or records."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.accuracy.oracle import error_in, find_path, load, wrong_among
from hybridwatch.measurement.load import TrialContext, run_prelude
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.metrics import WRONG_ANSWERS
from hybridwatch.records.run import Sample
from hybridwatch.records.trial_parts import Completion, near_tie_within
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.scenario import Scenario

_OUTDATED: Final = (
    "the oracle was asked other requests than these: run hybridwatch oracle make {model} {scenario}"
)


class Checked(NamedTuple):
    """The answers, the count of wrong ones, or why there is none; neither without an oracle."""

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
    """Count the wrong answers of trial ``number``, if the home's oracle goes so far."""
    oracle = load(find_path(home, scenario.answered_by))
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
    lengths = ((planned[at][1], len(right[at].tokens)) for at in known)
    if not all(request.can_have(length - request.echoed) for request, length in lengths):
        return None
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


class WrongAnswer(NamedTuple):
    """A request of the plan, from 0, answered otherwise, and the first token that is not right."""

    trial: int
    request: int
    position: int
    why: str

    def __str__(self) -> str:
        return f"trial {self.trial}, request {self.request}: {self.why}"


def wrong_answers(
    trial: TrialContext, home: Path, trials: Sequence[Sequence[Completion]]
) -> Iterator[WrongAnswer]:
    """Ask an engine every trial that an oracle has answered, as its side of the engine pool is."""
    scenario = trial.scenario
    bound = near_tie_within({scenario.engine.dtype})
    for number, right in enumerate(trials):
        trial.pool.make_ready(trial.side)
        now = replace(trial, number=number)
        run_prelude(now)
        waves = expand(scenario.workload.waves, scenario.workload.seed + number)
        found = checked(home, scenario, number, waves, drive_whole(now.engine, waves))
        if found.unsupported:
            raise MeasurementError(f"{scenario.id}: {next(iter(found.unsupported.values()))}")
        for request, (one, other) in enumerate(zip(found.answered, right, strict=True)):
            if error := error_in(one, other, bound) if one.is_wrong else None:
                yield WrongAnswer(number, request, *error)
