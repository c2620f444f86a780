"""Alerts as they were first seen, and which planted fault each is about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.analysis.cause import Area
from tests.planted_world import questions
from tests.planted_world.plan import Fault, Kind, World
from tests.planted_world.questions import NIGHTLY, Place
from tests.planted_world.replay import Morning, Replay

AREAS: Final[Mapping[Kind, Area]] = {
    Kind.STEP: Area.SPEED,
    Kind.COMMON_STEP: Area.SPEED,
    Kind.DRIFT: Area.SPEED,
    Kind.ONCE: Area.SPEED,
    Kind.MACHINE: Area.SPEED,
    Kind.ANSWERS: Area.ANSWERS,
    Kind.DEAD: Area.ENGINE,
    Kind.CONTRACT: Area.CONTRACT,
}
"""What an alert about a fault says that is affected; of those that may have one."""


@dataclass(frozen=True, eq=False)  # compared by what it is: hashing what it holds takes long
class Told:
    """An alert as it was first told."""

    alert: AlertGroup
    morning: Morning
    world: World
    open_until: int

    @property
    def opened(self) -> int:
        """The night whose run opened it."""
        return questions.opened_on(self.alert, self.world)

    @property
    def places(self) -> frozenset[Place]:
        """Where it says that it shows."""
        return questions.places_of(self.alert)

    @property
    def is_of_releases(self) -> bool:
        """Whether it is about two releases, and no nightly."""
        return not questions.builds_of(self.alert)[1].startswith(NIGHTLY)

    @cached_property
    def commits(self) -> tuple[str, ...] | None:
        """The commits that it blames; ``None`` where it blames none. Two records are read."""
        return questions.commits_of(self.alert, self.morning.source, self.world)

    @property
    def open_at_end(self) -> bool:
        """Whether it is still open on the last morning."""
        return self.open_until == self.world.nights - 1

    @property
    def line(self) -> str:
        """What it is about."""
        places = " ".join(sorted(f"{scenario}@{testbed}" for scenario, testbed in self.places))
        builds = " ".join(questions.builds_of(self.alert))
        return f"night {self.opened}: {places} {questions.area_of(self.alert).value} {builds}"


def told_in(whole: Replay) -> Iterator[Told]:
    """Every time that an alert was opened, as it was when it was first seen."""
    first: dict[tuple[str, str], tuple[AlertGroup, Morning]] = {}
    until: dict[tuple[str, str], int] = {}
    for morning in whole.mornings:
        for alert in filter(questions.is_open, morning.alerts):
            key = questions.opening_of(alert)
            first.setdefault(key, (alert, morning))
            until[key] = morning.night
    for key, (alert, morning) in first.items():
        yield Told(alert, morning, whole.world, until[key])


def cause_of(told: Told, on_duty: Sequence[Fault]) -> Fault | None:
    """The planted fault that an alert is about: of several the one that shows in fewest places."""
    fitting = [fault for fault in on_duty if _explains(fault, told)]
    return min(fitting, key=lambda fault: len(places_in(fault)), default=None)


def _explains(fault: Fault, told: Told) -> bool:
    end = told.world.nights if fault.stays else fault.last + 1
    return (
        AREAS.get(fault.kind) is questions.area_of(told.alert)
        and fault.first <= told.opened < end
        and not told.is_of_releases
        and any(fault.covers(*place) for place in told.places)
    )


def places_in(fault: Fault) -> list[Place]:
    """Where a fault shows."""
    return [(scenario, testbed) for scenario in fault.scenarios for testbed in fault.testbeds]
