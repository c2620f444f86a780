"""Choosing two sides, and judging them: what compare and CPU sync have in common."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, product
from types import MappingProxyType
from typing import Final

from hybridwatch.analysis.report import PLAIN
from hybridwatch.database.queries import Index
from hybridwatch.errors import HybridwatchError
from hybridwatch.history.judge import Chosen, JudgedReport, judge, machines_apart
from hybridwatch.history.runs import CONTROL, RunRow, controls_last, runs_by_id
from hybridwatch.pages.address import EVERY, Address, address
from hybridwatch.pages.document import (
    ChoiceField,
    Command,
    Filters,
    Inline,
    Line,
    Link,
    Notice,
    Section,
    When,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.runs import every_run
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.records.store import Broken, read_run
from hybridwatch.reports.sentence import repeat_command

_NEWEST: Final = 100
"""Runs of a scenario that can be chosen; any other one by a link."""
_ROLES: Final = ("baseline", "contender")
EVERY_SCENARIO: Final = {EVERY: "every scenario"}
"""An option: two builds in every scenario that measured both, instead of two sides of one."""
_CONTENDER: Final = 1
_REFUSED: Final = "refuse"
_WANTED: Final = "compare"
_ACROSS: Final = {_REFUSED: "are not compared", _WANTED: "are compared all the same"}


@dataclass(frozen=True, slots=True)
class PairSide:
    """A side of a run that can be chosen."""

    row: RunRow
    index: int

    @property
    def named(self) -> str:
        """As addresses and the command line name it."""
        return f"{self.row.run}#{self.index}"

    @property
    def build(self) -> str:
        """Label of its build."""
        return self.row.builds[self.index]

    @property
    def is_control(self) -> bool:
        """Whether its engine is bad on purpose."""
        return self.row.is_control and self.index == _CONTENDER

    @property
    def label(self) -> str:
        """As a list of choices names it."""
        role = f" · {_ROLES[self.index]}" if len(self.row.builds) > 1 else ""
        role = f" · {CONTROL}" if self.is_control else role
        return f"{self.build}{role} · {self.row.started_at:%Y-%m-%d %H:%M} · {self.row.run}"


@dataclass(frozen=True, slots=True)
class PairView:
    """Two sides as chosen, and whether testbeds are compared, offered where they differ."""

    choices: tuple[ChoiceField, ...]
    across: ChoiceField
    baseline: PairSide
    contender: PairSide

    @property
    def place(self) -> str:
        """The contender's scenario and testbed, as a sentence names them."""
        return f"{self.contender.row.scenario} on {self.contender.row.testbed}"

    @property
    def address(self) -> Address:
        """The comparison of the two."""
        sides = {"contender": self.contender.named, "baseline": self.baseline.named}
        return address("compare", scenario=self.contender.row.scenario, **sides)

    @property
    def command(self) -> str:
        """The command line that says the same again."""
        words = ["hybridwatch", "compare"]
        if self.baseline.row is self.contender.row and self.baseline.index < self.contender.index:
            words.append(self.baseline.row.run)
        else:
            words += [self.baseline.named, self.contender.named]
        if self.across.value == _WANTED:
            words.append("--across-testbeds")
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why two sides are not judged."""

    choices: tuple[ChoiceField, ...]
    notice: Notice


def is_of_builds(query: ViewQuery) -> bool:
    """Whether an address is about two builds in every scenario; a side has ``#`` in its name."""
    scenario = query.address.values("scenario")[-1:]
    words = [word for role in _ROLES for word in query.address.values(role)]
    return scenario == (EVERY,) or (not scenario and any("#" not in word for word in words))


def choose_builds(
    index: Index, query: ViewQuery
) -> tuple[tuple[ChoiceField, ...], list[PairView]] | None:
    """Read which two builds are wanted; give the newest sides of each scenario and testbed.

    A line or a release stands for its newest build. Without a wish the newest run's builds.
    """
    rows, runs = runs_by_id(index), index.runs()
    newest = _newest(rows.values())
    if newest is None:
        return None
    labels = {label: label for row in rows.values() for label in row.builds[::-1]}
    named = zip(runs["build"], runs["line"], runs["release"], strict=True)
    # The plain one last, of whose label others are made.
    known = sorted(named, key=lambda names: -len(names[0]))
    also = {word: label for label, *words in known for word in words}
    for role in _ROLES:
        word = "".join(query.address.values(role)[-1:])
        side = _find_side(rows, (word,))
        query.expand(role, side.build if side else word if word in labels else also.get(word, word))
    instead = (every_run(rows),)
    names = {**EVERY_SCENARIO, **{row.scenario: row.scenario for row in rows.values()}}
    scenario = query.one("Scenario", "scenario", names)
    first = _healthy(newest).build
    contender = query.subject("Contender", "contender", {first: first, **labels}, instead)
    healthy = [row.builds for row in controls_last(rows.values())]
    together = (old for old, *rest in healthy if rest == [contender.value])
    others = (old for old, *_ in healthy if old != contender.value)
    before = next(chain(together, others), contender.value)
    baseline = query.subject("Baseline", "baseline", {before: before, **labels}, instead)
    across = query.one("Different testbeds", "testbeds", _ACROSS, _REFUSED)
    choices = (scenario, baseline, contender)
    places: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows.values():
        places.setdefault((row.scenario, row.testbed), []).append(row)
    found = (find_pair(places[at], baseline.value, contender.value) for at in sorted(places))
    return choices, [PairView(choices, across, *pair) for pair in found if pair]


def _sides(rows: Iterable[RunRow]) -> list[PairSide]:
    return [PairSide(row, at) for row in rows for at in range(len(row.builds))]


def find_pair(rows: Iterable[RunRow], old: str, new: str) -> tuple[PairSide, PairSide] | None:
    """Find the newest sides of two builds among rows that are newest first, rather of one run."""
    sides = _sides(rows)
    left = [side for side in sides if side.build == old]
    right = [side for side in sides if side.build == new]
    both = {side.row.run: side for side in left}
    near = ((both[side.row.run], side) for side in right if side.row.run in both)
    return next(chain(near, product(left[:1], right[:1])), None)


def choose(
    rows: Mapping[str, RunRow], query: ViewQuery, more: Mapping[str, str] = MappingProxyType({})
) -> PairView | None:
    """Read which two sides are wanted, of rows that are newest first; builds name their newest.

    Else those of the newest run that has two, without an engine that is bad on purpose. ``more``
    are scenarios to offer that another view shows.
    """
    seen = {role: _find_side(rows, query.address.values(role)[-1:]) for role in _ROLES}
    instead = (every_run(rows),)
    offered = {**_scenarios(rows, seen), **more}
    scenario = query.subject("Scenario", "scenario", offered, instead)
    for role, side in seen.items():
        if side is not None and side.row.scenario != scenario.value:
            query.forget(role)  # the reader went on to another scenario
            seen[role] = None
    alike = [row for row in rows.values() if row.scenario == scenario.value]
    words = ("".join(query.address.values(role)[-1:]) for role in _ROLES)
    for role, named in zip(_ROLES, find_pair(alike, *words) or (), strict=False):
        query.expand(role, named.named)
        seen[role] = named
    sides = {side.named: side for side in (*_sides(alike[:_NEWEST]), *filter(None, seen.values()))}
    newest = _newest(alike)
    last = _healthy(newest) if newest else None
    contender = query.subject("Contender", "contender", _labels(sides, last), instead)
    right = sides.get(contender.value)
    baseline = query.subject("Baseline", "baseline", _labels(sides, _before(right, alike)), instead)
    across = query.one("Different testbeds", "testbeds", _ACROSS, _REFUSED)
    left = sides.get(baseline.value)
    if left is None or right is None:
        return None
    return PairView((scenario, baseline, contender), across, left, right)


def judged(source: ScreenSource, pair: PairView) -> JudgedReport | Obstacle:
    """Judge two sides as ``hybridwatch compare`` does, or say why that is not done."""
    left, right = pair.baseline, pair.contender
    if left.named == right.named:
        title = "Both sides are the same"
        return Obstacle(pair.choices, Notice(title, (_alone(pair),), quiet=True))
    try:
        sides = _read(source, pair)
        if isinstance(sides, JudgedReport):
            return sides
        apart = machines_apart(*sides)
        if apart and pair.across.value == _REFUSED:
            title = "A difference would be the machines' as much as the engines'"
            hint = "Measure both on one machine, or choose above to compare them all the same."
            choices = (*pair.choices, pair.across)
            return Obstacle(choices, Notice(title, (*apart, hint)))
        return judge(*sides, source.results, across_testbeds=bool(apart))
    except HybridwatchError as error:
        notice = Notice("These sides cannot be compared", (str(error),))
        return Obstacle(pair.choices, notice)


def _read(source: ScreenSource, pair: PairView) -> JudgedReport | tuple[Chosen, Chosen]:
    left, right = pair.baseline, pair.contender
    paths = [source.results / side.row.record for side in (left, right)]
    if left.row is right.row and (left.index, right.index) == (0, 1):
        # The commonest pair; it is judged already.
        entry = source.read(paths[0])
        if not isinstance(entry, Broken) and entry.report is not None:
            sides = Chosen(paths[0], entry.run, 0), Chosen(paths[1], entry.run, 1)
            return JudgedReport(*sides, PLAIN, entry.report)
    runs = [read_run(path) for path in dict.fromkeys(paths)]
    return Chosen(paths[0], runs[0], left.index), Chosen(paths[1], runs[-1], right.index)


def choices_of(pair: PairView, judged: JudgedReport) -> Filters:
    """Let the reader choose, across testbeds too where there are two."""
    are_apart = machines_apart(judged.baseline, judged.contender)
    return Filters((*pair.choices, pair.across) if are_apart else pair.choices)


def render_lead(pair: PairView) -> Line:
    """Say which two sides are looked at, with ways to their runs."""
    left, right = pair.baseline, pair.contender
    return (
        f"{left.row.scenario} \u00b7 ",
        *(_whose(left) if left.row is not right.row else (_way(left),)),
        " \u2192 ",
        *_whose(right),
    )


def repeat_section(pair: PairView, judged: JudgedReport) -> Section:
    """Give the command lines that judge the same and that measure it again."""
    again = Command(repeat_command(judged.report), "Measure both builds again, interleaved")
    return Section("Repeat it", (Command(pair.command, "Judge the same values again"), again))


def _whose(side: PairSide) -> tuple[Inline, ...]:
    return (_way(side), " (", When(side.row.started_at), f", {side.row.testbed})")


def _way(side: PairSide) -> Link:
    return Link(side.build, address("run", run=side.row.run))


def _alone(pair: PairView) -> str:
    if pair.contender.row.is_control and not pair.contender.is_control:
        return "What it can be compared with is bad on purpose: choose it as contender to see it."
    if len(pair.choices[1].options) > 1:
        return "Choose another baseline: compared with itself, a side shows nothing."
    return "It is the only one of this scenario; measure another build to compare it with."


def _find_side(rows: Mapping[str, RunRow], query: tuple[str, ...]) -> PairSide | None:
    run, _, index = (query or ("",))[0].rpartition("#")
    row = rows.get(run)
    if row is None or index not in {str(at) for at in range(len(row.builds))}:
        return None
    return PairSide(row, int(index))


def _scenarios(rows: Mapping[str, RunRow], seen: Mapping[str, PairSide | None]) -> dict[str, str]:
    """List every scenario, the one to begin with first."""
    query = next((side.row for side in (*seen.values(),)[::-1] if side is not None), None)
    first = query or _newest(rows.values())
    names = sorted({row.scenario for row in rows.values()})
    return {name: name for name in ([first.scenario] if first else []) + names}


def _newest(rows: Iterable[RunRow]) -> RunRow | None:
    """The run to begin with, of those newest first: no control, and of two sides, if there is."""
    ranked = sorted(rows, key=lambda row: (row.is_control, len(row.builds) == 1))
    return next(iter(ranked), None)


def _healthy(row: RunRow) -> PairSide:
    """The contender of a run; of a control its baseline."""
    last = PairSide(row, len(row.builds) - 1)
    return PairSide(row, 0) if last.is_control else last


def _before(contender: PairSide | None, rows: list[RunRow]) -> PairSide | None:
    """The baseline to begin with: of the same run, else of the one before on its testbed."""
    if contender is None:
        return None
    if contender.index:
        return PairSide(contender.row, 0)
    at = rows.index(contender.row)
    others = [*rows[at + 1 :], *reversed(rows[:at])]
    near = [row for row in others if row.testbed == contender.row.testbed]
    row = next(iter(sorted(near or others, key=lambda row: row.is_control)), None)
    return _healthy(row) if row else PairSide(contender.row, 0)


def _labels(sides: Mapping[str, PairSide], first: PairSide | None) -> dict[str, str]:
    ordered = ([first] if first else []) + list(sides.values())
    return {side.named: side.label for side in ordered}
