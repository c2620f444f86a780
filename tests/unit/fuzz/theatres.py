"""Theatres without an engine: stories fail by a rule."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridwatch_lab.fuzz.room import Room
from hybridwatch_lab.fuzz.search import Search
from hybridwatch_lab.fuzz.story import Story

ROOM = Room(
    inputs=(1, 3, 79, 80, 81, 160),
    outputs=(1, 2, 8),
    shares=(0, 80),
    budgets=(None, 16),
)


@dataclass
class RuledTheatre:
    """Stories that fit the rule fail; every story takes a second of its clock.

    Attributes:
        is_wrong: The rule.
        told: Every story that was played.
        engines: Engines that were taken besides the first.
        now: Seconds.
    """

    is_wrong: Callable[[Story], bool]
    told: list[Story] = field(default_factory=list)
    engines: int = 0
    now: float = 0.0

    def verdict(self, story: Story) -> tuple[str, ...]:
        self.told.append(story)
        self.now += 1
        return ("wrong",) if self.is_wrong(story) else ()

    def open_anew(self) -> None:
        self.engines += 1

    def clock(self) -> float:
        return self.now


def search(theatre: RuledTheatre, seconds: float = 5000, stories: int | None = None) -> Search:
    return Search(theatre, ROOM, seconds, stories, theatre.clock)
