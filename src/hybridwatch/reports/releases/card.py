"""The card of releases: what each one's model runners make of the scenarios, and why."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from hybridwatch.errors import RecordError
from hybridwatch.records.store.journal import read_entries
from hybridwatch.reports.releases.cell import CellState, ReleaseCell, cells_file
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.validation import Part, refusing_toml

RUNNERS: Final = ("v2", "v1")
"""Model runners, the one that GPUs run since 0.29.0 first."""

_FIRST: Final = "smoke"
"""The group that comes first."""

_Patterns = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Reason(Part):
    """Why something is wrong, with patterns (``*``) of where.

    Attributes:
        scenarios: Ids.
        metrics: Metrics, or ``failed_trial``.
        releases: Releases of vLLM.
        runners: Model runners.
        says: What a failure's first cause contains.
        why: In a sentence or two.
        finding: Its number in ``docs/findings.md``; None where it has none.
        upstream: Issue or pull request, and what became of it; empty where none is known.
    """

    scenarios: _Patterns
    metrics: _Patterns
    releases: _Patterns = ("*",)
    runners: _Patterns = ("*",)
    says: str = ""
    why: Annotated[str, Field(pattern=r"\S", description="a text")]
    finding: int | None = None
    upstream: str = ""

    def is_about(self, cell: ReleaseCell, fault: str) -> bool:
        """Whether it explains a fault of a cell."""
        asked = zip(
            (cell.scenario, fault, cell.release, cell.runner),
            (self.scenarios, self.metrics, self.releases, self.runners),
            strict=True,
        )
        return self.says in cell.detail and all(
            any(fnmatchcase(text, one) for one in patterns) for text, patterns in asked
        )


class _Reasons(Part):
    reason: Annotated[tuple[Reason, ...], Field(strict=False)] = ()


Step = tuple[tuple[str, str], tuple[str, str]]
"""Two neighbours: release and runner of each, the older release or V1 first."""


@dataclass(frozen=True, slots=True)
class CardPair:
    """A scenario on two neighbours."""

    scenario: str
    before: ReleaseCell
    after: ReleaseCell

    @property
    def is_nowhere(self) -> bool:
        """Whether the scenario applies to neither."""
        return self.before.state is self.after.state is CellState.ABSENT

    @property
    def outcomes(self) -> tuple[object, object]:
        """What came of it on both; values that are wrong in another measure are no difference."""
        before, after = self.before, self.after
        return (before.state, before.faults), (after.state, after.faults)


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that was measured.

    Attributes:
        releases: Of vLLM, the newest first.
        cells: By scenario, release and runner; what was measured of other work is left out.
        reasons: In the order of the file; their numbers on the card begin with 1.
    """

    scenarios: tuple[str, ...]
    releases: tuple[str, ...]
    cells: Mapping[tuple[str, str, str], ReleaseCell]
    reasons: tuple[Reason, ...]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Release and runner, the newest first."""
        return tuple(product(self.releases, RUNNERS))

    def numbers(self, cell: ReleaseCell) -> tuple[int, ...]:
        """Give the numbers of the reasons for what is wrong in a cell."""
        numbered = enumerate(self.reasons, start=1)
        return tuple(at for at, one in numbered if any(one.is_about(cell, f) for f in cell.faults))

    def unexplained(self) -> Iterator[tuple[ReleaseCell, tuple[str, ...]]]:
        """Yield each cell in which something is wrong without a reason, and what."""
        for cell in self.cells.values():
            told = [f for f in cell.faults if any(one.is_about(cell, f) for one in self.reasons)]
            if missing := tuple(fault for fault in cell.faults if fault not in told):
                yield cell, missing

    def steps(self) -> Iterator[tuple[Step, tuple[int, tuple[CardPair, ...]]]]:
        """Yield each two neighbours, with how many scenarios one has, and those that differ."""
        upgrades = [
            ((old, runner), (new, runner))
            for runner in RUNNERS
            for new, old in pairwise(self.releases)
        ]
        runners = [((one, RUNNERS[1]), (one, RUNNERS[0])) for one in self.releases]
        for before, after in (*upgrades, *runners):
            pairs = [
                CardPair(one, self.cells[one, *before], self.cells[one, *after])
                for one in self.scenarios
                if {(one, *before), (one, *after)} <= self.cells.keys()
            ]
            there = [one for one in pairs if not one.is_nowhere]
            if there:
                differing = tuple(one for one in there if one.outcomes[0] != one.outcomes[1])
                yield (before, after), (len(there), differing)


def read_card(results: Path, scenarios: Sequence[Scenario]) -> Card:
    """Read the card that a results folder has.

    Cells of scenarios that are no more, or of what they were, are left out.

    Raises:
        RecordError: Cells or reasons cannot be read.
    """
    digests = {one.id: digest(one) for one in scenarios if not one.is_of_speed_alone}
    path = cells_file(results)
    found = [
        c for c in read_entries(path, ReleaseCell) if digests.get(c.scenario) == c.scenario_digest
    ]
    groups = {_group(cell.scenario) for cell in found}
    shown = [one for one in digests if _group(one) in groups]
    return Card(
        tuple(sorted(shown, key=lambda one: (_group(one) != _FIRST, one))),
        tuple(sorted({cell.release for cell in found}, key=_numbers, reverse=True)),
        {cell.key: cell for cell in found},
        _read_reasons(path.with_name("reasons.toml")),
    )


def _read_reasons(path: Path) -> tuple[Reason, ...]:
    if not path.exists():
        return ()
    with refusing_toml(path, _Reasons, RecordError):
        return _Reasons.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).reason


def _group(scenario: str) -> str:
    return scenario.partition("/")[0]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
