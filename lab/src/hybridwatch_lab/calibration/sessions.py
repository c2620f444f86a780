"""Recorded sessions: measured trials of a real engine whose truth is known, one row a trial.

An engine was measured in turn with itself and with itself plus a planted fault, by blocks. Each
trial keeps one number per metric and statistic, and what was seen of the machine.
"""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import OneSide, list_subjects
from hybridwatch.errors import HistoryError
from hybridwatch.records.run import MachineState, Phase, Run, Sample, Trial
from hybridwatch_lab.calibration.simulated import STARTED, build_run

BASELINE: Final = "baseline"
"""The side that every other one of a session is compared with."""
SAME: Final = "same"
"""The side that is the same engine, unchanged. All others are named by their planted fault."""

_FACTS: Final = (
    "session",
    "block",
    "side",
    "at_s",
    "duration_s",
    "kernel_best_s",
    "kernel_median_s",
    "others",
)
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """One trial.

    Attributes:
        block: Which block of it, from 0; each side has one trial in a block.
        side: ``BASELINE``, ``SAME`` or the planted fault.
        at_s: When it began, seconds after the first of those that one engine served.
        duration_s: How long it took, in seconds.
        values: Base units, by metric and statistic: ``ttft.p99``.
    """

    session: str
    block: int
    side: str
    at_s: float
    duration_s: float
    around: MachineState
    values: Mapping[str, float]


def recorded(run: Run, names: Sequence[str], blocks: int) -> Iterator[RecordedTrial]:
    """Cut a long run into sessions of a few blocks, each trial reduced to what is compared.

    What gave no values and blocks that are left over are not among them.
    """
    sides = [OneSide(run, index) for index in range(len(run.builds))]
    numbers: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for subject in list_subjects(sides[0], sides[-1]):
        for side in sides:
            for index, value in reduce_side(side, subject).by_trial.items():
                numbers[index][f"{subject.metric.id}.{subject.statistic}"] = value
    planned = [side.planned(Phase.PERFORMANCE) for side in sides]
    place = {trial.index: k for trials in planned for k, trial in enumerate(trials)}
    whole = min(map(len, planned)) // blocks
    for trial in run.trials:
        number, block = divmod(place.get(trial.index, whole * blocks), blocks)
        if number < whole and trial.index in numbers and trial.surroundings is not None:
            yield RecordedTrial(
                session=f"{run.id}.{number}",
                block=block,
                side=names[trial.side],
                at_s=(trial.started_at - run.started_at).total_seconds(),
                duration_s=trial.duration_s,
                around=trial.surroundings,
                values=numbers[trial.index],
            )


def write_sessions(file: Path, trials: Iterable[RecordedTrial]) -> None:
    """Add trials to a file, or begin one."""
    known = _header(file)
    with file.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        for trial in trials:
            columns = [*_FACTS, *trial.values]
            if known is None:
                known = columns
                writer.writerow(known)
            if columns != known:
                raise HistoryError(f"{file}: columns: expected {known}, found {columns}")
            around = trial.around
            facts = (around.kernel_best_s, around.kernel_median_s, around.others)
            numbers = (trial.at_s, trial.duration_s, *facts, *trial.values.values())
            writer.writerow([trial.session, trial.block, trial.side, *map(_written, numbers)])


def _header(file: Path) -> list[str] | None:
    if not file.exists():
        return None
    with file.open(encoding="utf-8", newline="") as lines:
        return next(csv.reader(lines), None)


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DIGITS}g}"


def read_sessions(file: Path) -> Mapping[str, tuple[RecordedTrial, ...]]:
    """Read recorded sessions, each with its trials in order of measurement."""
    found: defaultdict[str, list[RecordedTrial]] = defaultdict(list)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            missing = set(_FACTS) - set(rows.fieldnames or ())
            if missing:
                raise HistoryError(f"{file}: columns: missing {', '.join(sorted(missing))}")
            for row in rows:
                trial = _trial(row, f"{file}:{rows.line_num}")
                found[trial.session].append(trial)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HistoryError(f"{file}: cannot be read: {error}") from error
    return {name: tuple(trials) for name, trials in found.items()}


def joined(
    sessions: Mapping[str, Sequence[RecordedTrial]], blocks: int
) -> list[list[RecordedTrial]]:
    """Make longer sessions of those that one recording made in turn; a rest of it is left out."""
    recordings: defaultdict[str, list[RecordedTrial]] = defaultdict(list)
    for name in sorted(sessions, key=lambda one: (one.partition(".")[0], _number(one))):
        trials = sessions[name]
        recording = recordings[name.partition(".")[0]]
        begun = 1 + max((one.block for one in recording), default=-1)
        recording += [replace(one, block=one.block + begun) for one in trials]
    found = []
    for trials in recordings.values():
        whole = (1 + max(one.block for one in trials)) // blocks
        for first in range(0, whole * blocks, blocks):
            some = [one for one in trials if first <= one.block < first + blocks]
            found.append([replace(one, block=one.block - first) for one in some])
    return found


def _number(name: str) -> int:
    return int(name.partition(".")[2])


def _trial(row: Mapping[str, str | None], where: str) -> RecordedTrial:
    def number(column: str) -> float:
        try:
            value = float(row[column] or "")
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise HistoryError(f"{where}: {column}: expected a number, found {row[column]!r}")
        return value

    return RecordedTrial(
        session=str(row["session"]),
        block=int(number("block")),
        side=str(row["side"]),
        at_s=number("at_s"),
        duration_s=number("duration_s"),
        around=MachineState(
            kernel_best_s=number("kernel_best_s"),
            kernel_median_s=number("kernel_median_s"),
            others=number("others") if row["others"] else None,
        ),
        values={name: number(name) for name in row if name not in _FACTS},
    )


def as_run(trials: Sequence[RecordedTrial], contender: str) -> Run:
    """Make the run that a session of the baseline and one other side would have been.

    ``trials``: of one session, or of several, one after the other.
    """
    kept = [trial for trial in trials if trial.side in {BASELINE, contender}]
    made = Counter((trial.session, trial.block) for trial in kept)
    whole = [trial for trial in kept if made[trial.session, trial.block] == 2]
    return build_run(tuple(_as_measured(index, trial) for index, trial in enumerate(whole)))


def _as_measured(index: int, trial: RecordedTrial) -> Trial:
    samples = []
    for name, value in trial.values.items():
        metric, _, statistic = name.rpartition(".")
        samples.append(Sample(metric, (value,), statistic))
    return Trial(
        index=index,
        side=int(trial.side != BASELINE),
        phase=Phase.PERFORMANCE,
        started_at=STARTED + timedelta(seconds=trial.at_s),
        duration_s=trial.duration_s,
        samples=tuple(samples),
        surroundings=trial.around,
    )
