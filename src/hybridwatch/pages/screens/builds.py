"""Builds, fixes and releases: which build has which fix, what proves it; and: may I upgrade?"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

import pandas as pd

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import RecordError
from hybridwatch.history.controls import ControlRun, find_newest, list_controls, list_fixes
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Column,
    Command,
    Document,
    Filters,
    Inline,
    Link,
    Notice,
    Paragraph,
    Row,
    Section,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.screen import (
    ScreenSource,
    alerts_here,
    broken_in,
    checkout_notice,
    empty_store,
    run_link,
    since,
    status_line,
    trouble_notice,
)
from hybridwatch.records.identity import FixState
from hybridwatch.reports.alert_text import common, describe_place, group_text
from hybridwatch.reports.releases import (
    Card,
    read_card,
    render_cell,
    render_column,
    render_difference,
    render_measured,
    render_reason,
    render_short_cell,
    render_step,
)
from hybridwatch.scenarios.fixes import FIX_PARTS, FIXES
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home_or_shipped

_ABREAST: Final = 8
"""Builds side by side when none are chosen; more would not fit a screen."""
_STATES: Final[Mapping[FixState, tuple[str, str]]] = {
    FixState.PRESENT: ("\u2714 present", "The release has it."),
    FixState.APPLIED: ("+ applied", "The release lacks it; the plugin put it in."),
    FixState.LACKING: ("\u2716 lacking", "The release does not have it, and no one put it in."),
    FixState.REVERTED: ("\u2212 reverted", "The release has it; the plugin took it out."),
    FixState.NOT_APPLICABLE: ("n/a", "The release has no code that the fix could change."),
}
"""How a state is written, and what it means."""
_UNPROBED: Final = Cell("-", title="No run of this build has probed it.")
_WHOLES: Final = {part: whole for whole, parts in FIX_PARTS.items() for part in parts}
_CARD_LEAD: Final = (
    "What the contracts of each scenario show on each vLLM release and model runner, as released; "
    "numbers in brackets are those of the reasons."
)


@dataclass(frozen=True, slots=True)
class ScreenBuild:
    """A build as its newest ``run`` has it; an older one found ``wavers`` in another state."""

    label: str
    release: str
    runs: int
    run: str
    newest: datetime
    fixes: Mapping[str, FixState]
    wavers: frozenset[str]


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show every fix in every build, and every build, measured or not."""
    checkout = source.checkout()
    builds = list_screen_builds(source.index.runs())
    choice = query.many("Builds", "build", {build.label: build.label for build in builds})
    shown = [build for build in builds if build.label in choice.chosen] or _first(builds)
    title = "Builds and fixes"
    blocks: list[Block] = [*broken_in(source), *checkout_notice(checkout)]
    if builds:
        newest = find_newest(list_controls(source.index, checkout.scenarios))
        proofs = _proofs(checkout.scenarios.values(), newest)
        blocks += [Filters((choice,)), *_matrix(shown, builds, proofs, source)]
    else:
        blocks = [*empty_store(source), *checkout_notice(checkout)]
    blocks += [*_between_releases(source), *_all(builds, checkout.builds, source)]
    missing = len(set(checkout.builds) - {build.label for build in builds})
    lead = f"{plural(len(builds), 'build')} measured, {missing} listed and not measured"
    return Document(title, tuple(blocks), lead=lead)


def list_screen_builds(runs: pd.DataFrame) -> tuple[ScreenBuild, ...]:
    """Collect builds from the sides of runs that probed fixes, the newest release first."""
    sides: defaultdict[str, list[tuple[str, str, datetime, Mapping[str, FixState]]]]
    sides = defaultdict(list)
    columns = (runs[name] for name in ("build", "release", "run", "started_at", "fixes"))
    for label, release, run, started, fixes in zip(*columns, strict=True):
        if probed := list_fixes(fixes):
            sides[label].append((release, run, started.to_pydatetime(), probed))
    found = [_build(label, some) for label, some in sides.items()]
    return tuple(sorted(found, key=_order))


def _build(
    label: str, sides: Sequence[tuple[str, str, datetime, Mapping[str, FixState]]]
) -> ScreenBuild:
    release, run, newest, fixes = sides[-1]
    older = (probed for *_, probed in sides[:-1])
    wavers = {fix for probed in older for fix in fixes if probed.get(fix, fixes[fix]) != fixes[fix]}
    runs = len({run for _, run, *_ in sides})
    return ScreenBuild(label, release, runs, run, newest, fixes, frozenset(wavers))


def _order(build: ScreenBuild) -> tuple[tuple[int, ...], str, str]:
    """Newest release first, then by name, a build before what was switched on it."""
    numbers = tuple(-int(part) for part in re.findall(r"\d+", build.release.partition("+")[0]))
    return (numbers or (1,), build.release, build.label)


def _first(builds: Sequence[ScreenBuild]) -> list[ScreenBuild]:
    """Choose what is shown when no build is chosen: releases as they are, where there is any."""
    switched = {FixState.APPLIED, FixState.REVERTED}
    plain = [build for build in builds if switched.isdisjoint(build.fixes.values())]
    return (plain or list(builds))[:_ABREAST]


_Proofs: TypeAlias = Mapping[str, ControlRun | None]
"""Scenarios that guard a fix, each with its newest known-bad control, if there is one."""


def _proofs(
    scenarios: Iterable[Scenario], newest: Mapping[str, ControlRun]
) -> Mapping[str, _Proofs]:
    proofs: defaultdict[str, dict[str, ControlRun | None]] = defaultdict(dict)
    for scenario in scenarios:
        for fix in scenario.guarded:
            proofs[fix][scenario.id] = newest.get(scenario.id)
    return proofs


def _matrix(
    shown: Sequence[ScreenBuild],
    builds: Sequence[ScreenBuild],
    proofs: Mapping[str, _Proofs],
    source: ScreenSource,
) -> Iterator[Block]:
    known = [*FIXES, *sorted({fix for build in builds for fix in build.fixes} - set(FIXES))]
    columns: tuple[Column | str, ...] = (
        "fix",
        Column("proved by", wide=True, title="Scenarios that are run with and without the fix"),
        *(build.label for build in shown),
    )
    rows = tuple(_fix(fix, shown, proofs.get(fix, {}), source) for fix in known)
    text = "A state is what the newest run of a build probed in its engine."
    if len(shown) < len(builds):
        text += f" {len(shown)} of {plural(len(builds), 'build')} stand here; choose others above."
    yield Paragraph(text, quiet=True)
    yield Table("Fixes by build", columns, rows)


def _fix(fix: str, shown: Sequence[ScreenBuild], proofs: _Proofs, source: ScreenSource) -> Row:
    whole = _WHOLES.get(fix)
    return (
        Cell(fix, f"part of {whole}" if whole else ""),
        _proved(proofs, source),
        *(_state(fix, build) for build in shown),
    )


def _proved(proofs: _Proofs, source: ScreenSource) -> Cell:
    if not proofs:
        return Cell("-", title="No scenario is run with and without this fix.")
    line: list[Inline] = []
    for scenario, control in proofs.items():
        line += ["\n"] if line else []
        if control is None or control.detection is None:
            line.append(f"{scenario}, not run")
            continue
        way = Link(scenario, address("run", run=control.run))
        line += [way, f" {control.detection.value} ", source.ago(control.started_at)]
    return Cell(tuple(line))


def _state(fix: str, build: ScreenBuild) -> Cell:
    state = build.fixes.get(fix)
    if state is None:
        return _UNPROBED
    word, means = _STATES[state]
    under = "otherwise in older runs" if fix in build.wavers else ""
    return Cell(word, under, title=means, raw=state.value)


def _between_releases(source: ScreenSource) -> Iterator[Section]:
    """List what comparisons of two releases found: it never ends, so no alert is open for it."""
    found = [
        group
        for group in alerts_here(source)
        if group.lead.subject.compares_releases and not group.status.is_over
    ]
    if not found:
        return
    columns = ("release", Column("what happened", wide=True), "against", "measured, run", "status")
    found.sort(key=lambda group: group.opened_by.place, reverse=True)
    rows = tuple(
        (
            group.lead.subject.contender,
            Link(
                group_text(group).sentence(f" in {describe_place(group)}"),
                address("alerts", alert=group.key),
            ),
            common((one.subject.baseline for one in group.current), "release"),
            since(group.opened_by, source),
            Cell(status_line(group)),
        )
        for group in found
    )
    text = "A comparison of two releases never changes, so it opens no alert and does not end."
    table = Table("Between releases", columns, rows)
    yield Section("Between releases", (Paragraph(text, quiet=True), table))


def _all(
    builds: Sequence[ScreenBuild], listed: Mapping[str, str], source: ScreenSource
) -> Iterator[Section]:
    """List every build that was measured, and every one that could be."""
    columns = (
        "build",
        "vLLM",
        Column("switched", wide=True),
        Column("runs", number=True),
        "newest",
    )
    measured = [
        (
            Link(build.label, address("runs", build=build.label)),
            build.release,
            _switched(build),
            Cell(str(build.runs), raw=build.runs),
            Cell(source.ago(build.newest), run_link(build.run)),
        )
        for build in builds
    ]
    known = {build.label for build in builds}
    waiting: list[Row] = [
        (name, release, "-", Cell("0", raw=0), "not measured")
        for name, release in listed.items()
        if name not in known
    ]
    if rows := (*measured, *waiting):
        yield Section("Builds", (Table("Builds", columns, rows),))


def _switched(build: ScreenBuild) -> str:
    facts = [
        f"{state.value}: {', '.join(fixes)}"
        for state in (FixState.APPLIED, FixState.REVERTED)
        if (fixes := [fix for fix, found in sorted(build.fixes.items()) if found is state])
    ]
    return "; ".join(facts) or "-"


def show_releases(source: ScreenSource, query: ViewQuery) -> Document:  # noqa: ARG001 (nothing can be chosen)
    """Show every release that was measured, what differs between two, and why."""
    try:
        card = read_card(source.results, find(home_or_shipped() / "scenarios", []))
    except RecordError as error:
        wrong = trouble_notice("The card cannot be read", error)
        return Document("Releases", (wrong,), lead=_CARD_LEAD)
    if not card.cells:
        hint = "No release was measured yet. It takes hours; a run that is stopped goes on later:"
        blocks: tuple[Block, ...] = (Paragraph(hint), Command("hybridwatch releases run"))
        return Document("Releases", blocks, lead=_CARD_LEAD)
    return Document("Releases", tuple(_card_blocks(card)), lead=_CARD_LEAD)


def _card_blocks(card: Card) -> Iterator[Block]:
    unexplained = list(card.unexplained())
    if unexplained:
        faulty = tuple(f"{' '.join(cell.key)}: {', '.join(faults)}" for cell, faults in unexplained)
        yield Notice(f"{plural(len(faulty), 'cell')} not explained", faulty)
    names = [Column(render_column(column)) for column in card.columns]
    rows = [
        (Cell(one), *(_card_cell(card, (one, *column)) for column in card.columns))
        for one in card.scenarios
    ]
    days = (Cell(render_measured(card, column)) for column in card.columns)
    lines = (*rows, (Cell("measured"), *days))
    yield Table("Releases", ("scenario", *names), lines, visible=True)
    steps = [
        (render_step(step, both, pairs), *render_difference(card, pair))
        for step, (both, pairs) in card.steps()
        for pair in pairs
    ]
    columns = ("step", "scenario", "before", "after")
    yield Table("Differences", columns, tuple(steps), visible=True)
    reasons = [(str(at), render_reason(one)) for at, one in enumerate(card.reasons, start=1)]
    columns_of_reasons = (Column("number", number=True), Column("why", wide=True))
    yield Table("Reasons", columns_of_reasons, tuple(reasons), visible=True)


def _card_cell(card: Card, key: tuple[str, str, str]) -> Cell:
    cell = card.cells.get(key)
    return Cell(render_short_cell(card, cell), title=render_cell(cell) if cell else "")
