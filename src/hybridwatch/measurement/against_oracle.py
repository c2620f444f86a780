"""Asks an engine what an oracle was asked, and says where it answers otherwise.

No probe is on, no reference pass is made and nothing is stored: it takes seconds once the engine is
up, for a release that is new or a tree that was patched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.accuracy.oracle import error_in
from hybridwatch.measurement.right_answers import checked
from hybridwatch.measurement.station import Station, run_prelude
from hybridwatch.records.completion import Completion, near_tie_within
from hybridwatch.scenarios.expansion import expand


class WrongAnswer(NamedTuple):
    """A request that an engine answered otherwise than the oracle.

    Attributes:
        trial: Which trial, from 0.
        request: Which of its requests, from 0, in the order of the plan.
        position: Of the first token that is not right, from 0.
        why: In words.
    """

    trial: int
    request: int
    position: int
    why: str

    def __str__(self) -> str:
        return f"trial {self.trial}, request {self.request}: {self.why}"


def wrong_answers(
    station: Station, home: Path, trials: Sequence[Sequence[Completion]]
) -> Iterator[WrongAnswer]:
    """Ask an engine every trial that an oracle has answered, as its side of the bench is.

    Args:
        station: Whose engine is asked.
        home: Holds the oracles.
        trials: The right answers.

    Raises:
        BuildError: The build cannot be switched as its label says.
        EngineError: Its engine does not come up or does not answer.
        MeasurementError: The oracle was asked other requests than the scenario has now.
    """
    scenario = station.scenario
    bound = near_tie_within({scenario.engine.dtype})
    for number, right in enumerate(trials):
        station.bench.make_ready(station.side)
        now = replace(station, number=number)
        run_prelude(now)
        waves = expand(scenario.workload.waves, scenario.workload.seed + number)
        found = checked(home, scenario, number, waves, now.complete(waves))
        if found.unsupported:
            raise MeasurementError(f"{scenario.id}: {next(iter(found.unsupported.values()))}")
        for request, (one, other) in enumerate(zip(found.answered, right, strict=True)):
            if error := error_in(one, other, bound) if one.is_wrong else None:
                yield WrongAnswer(number, request, *error)
