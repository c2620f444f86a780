"""The card of releases: what each one's model runners make of the scenarios, and why."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import RecordError
from hybridwatch.metrics import find_metric
from hybridwatch.records.store.files import JournalEntry, read_entries
from hybridwatch.reports.escape import as_item, escape, render_table
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.validation import Part, refusing_toml

RUNNERS: Final = ("v2", "v1")
"""Model runners, the one that GPUs run since 0.29.0 first."""
_FIRST: Final = "smoke"
"""The group that comes first."""
_Patterns = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
FAILED_TRIAL: Final = "failed_trial"
"""Stands where a metric stands, for a trial that gave no measurement."""
_OWED: Final = "owed"
_HEAD: Final = (
    "Written by `hybridwatch releases card --out docs/releases.md` from `results/releases/`; "
    "`hybridwatch releases run` measures what is missing. Each cell is a release on a CPU, as "
    "released, with the model runner that is named; its contracts are held against what the "
    "scenario expects of a healthy engine. A dash is a scenario that does not apply, owed one that "
    "is not measured yet. Numbers in brackets are those of the reasons below. "
    "`results/releases/cells.jsonl` has every wrong value."
)


class CellState(StrEnum):
    """What became of a scenario."""

    CLEAN = "clean"
    BROKEN = "broken"
    """A value is not what is expected of a healthy engine."""
    FAILED = "fails"
    """The engine did not come up, died, or a trial gave no measurement."""
    ABSENT = "not there"
    """The scenario does not apply."""


class ReleaseCell(JournalEntry):
    """What became of a scenario on a release's model runner; ``results/README.md`` has the keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    release: str
    runner: str
    scenario_digest: str
    state: CellState
    broken: Mapping[str, float | None] = {}
    detail: str = ""
    trials: int = 0
    measured_at: datetime
    revision: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Which cell of the card it is."""
        return self.scenario, self.release, self.runner

    @property
    def faults(self) -> tuple[str, ...]:
        """The metrics that are wrong, each of which wants a reason."""
        return (FAILED_TRIAL,) if self.state is CellState.FAILED else tuple(sorted(self.broken))


class Reason(Part):
    """Why something is wrong, and patterns (``*``) of where; ``results/README.md`` has the keys."""

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
        searched = zip(
            (cell.scenario, fault, cell.release, cell.runner),
            (self.scenarios, self.metrics, self.releases, self.runners),
            strict=True,
        )
        return self.says in cell.detail and all(
            any(fnmatchcase(text, one) for one in patterns) for text, patterns in searched
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
    def differs(self) -> bool:
        """Whether it came out otherwise; a value that is wrong in another measure does not."""
        before, after = self.before, self.after
        return (before.state, before.faults) != (after.state, after.faults)


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that was measured; releases the newest first, reasons numbered from 1."""

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
            missing = (f for f in cell.faults if not any(r.is_about(cell, f) for r in self.reasons))
            if faults := tuple(missing):
                yield cell, faults

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
            nowhere = sum(p.before.state is p.after.state is CellState.ABSENT for p in pairs)
            if there := len(pairs) - nowhere:
                yield (before, after), (there, tuple(pair for pair in pairs if pair.differs))


def read_card(results: Path, scenarios: Sequence[Scenario]) -> Card:
    """Read the card of a results folder, without cells of scenarios that are gone or changed."""
    digests = {one.id: digest(one) for one in scenarios if not one.is_of_speed_alone}
    path = cells_file(results)
    found = [
        c for c in read_entries(path, ReleaseCell) if digests.get(c.scenario) == c.scenario_digest
    ]
    groups = {_group(cell.scenario) for cell in found}
    shown = [one for one in digests if _group(one) in groups]
    releases = {cell.release for cell in found}
    return Card(
        tuple(sorted(shown, key=lambda one: (_group(one) != _FIRST, one))),
        tuple(sorted(releases, key=lambda one: [*map(int, one.split("."))], reverse=True)),
        {cell.key: cell for cell in found},
        _read_reasons(path.with_name("reasons.toml")),
    )


def _read_reasons(path: Path) -> tuple[Reason, ...]:
    with refusing_toml(path, _Reasons, RecordError):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return _Reasons.model_validate(tomllib.loads(text)).reason


def _group(scenario: str) -> str:
    return scenario.partition("/")[0]


def cells_file(results: Path) -> Path:
    """Where the cells are kept."""
    return results / "releases" / "cells.jsonl"


def render_card(card: Card) -> str:
    """Write the card as Markdown; the same cells and reasons give the same text."""
    parts = (
        "# Releases: may I upgrade?",
        _HEAD,
        *_cells(card),
        "## From one release to the next",
        *_steps(card),
        "## Why",
        "The findings are those of [findings.md](findings.md).",
        *_reasons(card),
        "## Not there",
        *_absent(card),
    )
    return "\n\n".join(parts) + "\n"


def render_column(column: tuple[str, str]) -> str:
    """Name a release and its model runner."""
    release, runner = column
    return f"{release} {runner.upper()}"


def render_cell(cell: ReleaseCell) -> str:
    """Say what became of a scenario, with every value that is wrong."""
    values = ", ".join(f"{name} {_value(name, found)}" for name, found in cell.broken.items())
    return ": ".join(part for part in (cell.state.value, values or cell.detail) if part)


def render_short_cell(card: Card, cell: ReleaseCell | None) -> str:
    """Say in a word what became of a scenario, with the numbers of the reasons."""
    if cell is None:
        return _OWED
    if not cell.faults:
        return cell.state.value
    numbered = card.numbers(cell)
    return f"{cell.state.value} [{', '.join(map(str, numbered)) or 'not explained'}]"


def render_step(step: Step, both: int, differences: Sequence[CardPair]) -> str:
    """Say in a line what changes from one neighbour to the other."""
    names = " to ".join(map(render_column, step))
    return f"{names}: {len(differences)} of {plural(both, 'scenario')} otherwise"


def render_difference(card: Card, pair: CardPair) -> tuple[str, str, str]:
    """Give scenario, before and after; a reason is a number, what is not there says why."""
    return pair.scenario, _side(card, pair.before), _side(card, pair.after)


def render_reason(reason: Reason) -> str:
    """Say why, where it is written up, and what became of it."""
    finding = "" if reason.finding is None else f"finding {reason.finding}"
    more = "; ".join(part for part in (finding, reason.upstream) if part)
    return f"{reason.why} ({more})" if more else reason.why


def render_measured(card: Card, column: tuple[str, str]) -> str:
    """Say on which days a column was measured, and how many trials a cell has."""
    found = [
        c for c in card.cells.values() if c.key[1:] == column and c.state is not CellState.ABSENT
    ]
    days = sorted({f"{cell.measured_at:%Y-%m-%d}" for cell in found})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else numbers.ABSENT


def _side(card: Card, cell: ReleaseCell) -> str:
    words = render_short_cell(card, cell)
    return f"{words}, {_need(cell)}" if cell.state is CellState.ABSENT else words


def _cells(card: Card) -> Iterator[str]:
    measured = [cell for cell in card.cells.values() if cell.state is not CellState.ABSENT]
    trials = sorted({cell.trials for cell in measured if cell.trials})
    total = len(card.scenarios) * len(card.columns) - (len(card.cells) - len(measured))
    counts = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1])))) if trials else "0"
    red = sum(1 for cell in measured if cell.faults)
    yield (
        f"{len(measured)} of {total} cells are measured, with {counts} contract trial(s) each; "
        f"{red} are broken or fail."
    )
    columns = card.columns
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in card.scenarios:
        cells = tuple(_short(card, card.cells.get((one, *column))) for column in columns)
        alike.setdefault(cells, []).append(f"`{one}`")
    rows = [[", ".join(named), *cells] for cells, named in alike.items()]
    yield render_table(["scenario", *map(render_column, columns)], rows)
    days: dict[str, list[str]] = {}
    for column in columns:
        days.setdefault(render_measured(card, column), []).append(render_column(column))
    yield "\n".join(f"- Measured {when}: {', '.join(where)}" for when, where in days.items())


def _short(card: Card, cell: ReleaseCell | None) -> str:
    if cell is None or cell.state is CellState.ABSENT:
        return _OWED if cell is None else numbers.ABSENT
    words = render_short_cell(card, cell)
    return f"**{words}**" if cell.faults else words


def _steps(card: Card) -> Iterator[str]:
    for step, (both, differences) in card.steps():
        if step[0][0] == step[1][0]:
            continue
        alike: dict[tuple[str, str], list[str]] = {}
        for pair in differences:
            scenario, *sides = render_difference(card, pair)
            before, after = map(escape, sides)
            alike.setdefault((before, after), []).append(f"`{scenario}`")
        lines = (
            f"- {', '.join(named)}: {before}; then {after}"
            for (before, after), named in alike.items()
        )
        yield "\n".join([f"**{render_step(step, both, differences)}**", *lines])


def _reasons(card: Card) -> Iterator[str]:
    used = {at for cell in card.cells.values() for at in card.numbers(cell)}
    numbered = enumerate(card.reasons, start=1)
    lines = [f"{at}. {render_reason(one)}" for at, one in numbered if at in used]
    yield "\n".join(lines) or "Nothing is broken."
    missing = [
        f"{cell.scenario} on {render_column(cell.key[1:])}: {', '.join(faults)}"
        for cell, faults in card.unexplained()
    ]
    if missing:
        yield "\n".join(["Not explained:", "", *map(as_item, missing)])


def _absent(card: Card) -> Iterator[str]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in card.scenarios:
        cells = (card.cells.get((one, *column)) for column in card.columns)
        needs = (_need(cell) for cell in cells if cell and cell.state is CellState.ABSENT)
        alike.setdefault(tuple(dict.fromkeys(needs)), []).append(one)
    lines = (f"{', '.join(named)}: {', '.join(needs)}" for needs, named in alike.items() if needs)
    yield "\n".join(map(as_item, lines)) or "Nothing."


def _need(cell: ReleaseCell) -> str:
    return cell.detail.partition(", and ")[0]


def _value(name: str, found: float | None) -> str:
    return "has no value" if found is None else numbers.value(found, find_metric(name))
