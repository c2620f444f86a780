"""Targets without an engine: cases fail by a rule."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hybridwatch_lab.fuzz.case import FuzzCase, SearchSpace
from hybridwatch_lab.fuzz.search import FuzzSearch

SPACE = SearchSpace(
    inputs=(1, 3, 79, 80, 81, 160),
    outputs=(1, 2, 8),
    shares=(0, 80),
    budgets=(None, 16),
)


@dataclass
class RuledTarget:
    """Cases that fit the rule fail; every case takes a second of its clock."""

    is_wrong: Callable[[FuzzCase], bool]
    told: list[FuzzCase] = field(default_factory=list)
    engines: int = 0
    now: float = 0.0

    def verdict(self, case: FuzzCase) -> tuple[str, ...]:
        self.told.append(case)
        self.now += 1
        return ("wrong",) if self.is_wrong(case) else ()

    def open_anew(self) -> None:
        self.engines += 1

    def clock(self) -> float:
        return self.now


def search(target: RuledTarget, seconds: float = 5000, cases: int | None = None) -> FuzzSearch:
    return FuzzSearch(target, SPACE, seconds, cases, target.clock)
