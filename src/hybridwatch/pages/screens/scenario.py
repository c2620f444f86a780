"""One scenario: the history of its metrics, build by build, and where it changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

import pandas as pd

from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.moment import Series
from hybridwatch.database.queries import Index
from hybridwatch.history.lines import Line, build_lines, compute_medians, list_line_names
from hybridwatch.history.machine_changes import MachineChange
from hybridwatch.history.runs import bad_on_purpose, controls_last, runs_by_id
from hybridwatch.metrics import Kind, find_metric
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    ChoiceField,
    Column,
    Document,
    Filters,
    Folded,
    Link,
    Paragraph,
    Row,
    Section,
    Table,
)
from hybridwatch.pages.document import Line as Words
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.histories import (
    build_chart,
    build_charts,
    change_points,
    changes_on,
    with_machine,
)
from hybridwatch.pages.screens.runs import build_headlines, verdict_cell
from hybridwatch.pages.screens.screen import (
    ScreenSource,
    broken_in,
    empty_store,
    find_gap,
    gaps_here,
    gaps_notice,
)
from hybridwatch.reports.figures.marks import mark_gap

_KEY: Final = ("contract", "accuracy", "output_throughput", "ttft", "tpot", "host_syncs_per_step")
"""What is drawn when nothing is chosen, as far as there is room."""
_CHARTS: Final = 4
_LINES: Final = 4
_RUNS: Final = 12
_SPARK: Final = 24
_KEPT: Final = 32
"""Histories that are kept laid out, and as many charts of them: a scenario with all it has."""
_KEPT_WHOLE: Final = 4
"""Scenarios with every level of all their metrics, of which little is shown."""
_KEPT_MEDIANS: Final = 1024
"""Small ones: those of all metrics of some fifty scenarios."""
_NEWEST: Final = {"50": "newest 50", "200": "newest 200", "1000": "newest 1000"}
_ALONG: Final = {"time": "time", "release": "release"}


@dataclass(frozen=True, slots=True)
class _LoadPlace:
    """What is looked at."""

    scenario: str
    testbed: str
    newest: int
    over_releases: bool


class _Histories:
    """What was laid out last of one index, which never changes: a filter changes little of it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.series = lru_cache(maxsize=_KEPT)(self._series)
        self.levels = lru_cache(maxsize=_KEPT_WHOLE)(index.levels)
        self.lines = lru_cache(maxsize=_KEPT)(self._lines)
        self.medians = lru_cache(maxsize=_KEPT_MEDIANS)(self._medians)
        self.chart = lru_cache(maxsize=_KEPT)(self._chart)
        self.runs = lru_cache(maxsize=_KEPT)(self._runs)
        self.settings = lru_cache(maxsize=_KEPT)(index.settings)
        self.bad = bad_on_purpose(index)

    def _runs(self, scenario: str, testbed: str) -> pd.DataFrame:
        """The runs, and whether each is of an engine that is ``bad`` on purpose."""
        runs = self._index.runs(scenario)
        runs = runs[runs["testbed"] == testbed]
        return runs.assign(bad=runs["record"].isin(self.bad) & (runs["side"] == 1))

    def _series(self, scenario: str, testbed: str, subject: Subject) -> Series:
        return self._index.series(scenario, testbed, subject.metric.id, subject.statistic)

    def _lines(self, place: _LoadPlace, subject: Subject, names: tuple[str, ...]) -> list[Line]:
        return build_lines(
            self.series(place.scenario, place.testbed, subject),
            subject.metric,
            newest=place.newest,
            over_releases=place.over_releases,
            builds=names,
            settings=self.settings(place.scenario),
            machines=self.list_machine_changes(place),
        )

    def _chart(
        self,
        place: _LoadPlace,
        subject: Subject,
        names: tuple[str, ...],
        gap: tuple[datetime, datetime] | None,
    ) -> Chart:
        lines = self.lines(place, subject, names)
        chart = build_chart(subject, lines, place.scenario)
        if gap and not place.over_releases:
            mark_gap(chart.figure, *gap, "not measured")
        return with_machine(chart, self.list_machine_changes(place))

    def list_machine_changes(self, place: _LoadPlace) -> tuple[MachineChange, ...]:
        """How the machine changed; over releases no place is a moment."""
        return () if place.over_releases else changes_on(place.testbed, self._index)

    def _medians(self, place: _LoadPlace, subject: Subject, name: str) -> tuple[Line, ...]:
        levels, machines = self.read_levels(place, subject), self.list_machine_changes(place)
        along = place.newest, place.over_releases
        return tuple(compute_medians(levels, subject.metric, name, *along, machines))

    def read_levels(self, place: _LoadPlace, subject: Subject) -> pd.DataFrame:
        """The levels of one of the scenario's metrics: all of them are read at once."""
        every = self.levels(place.scenario, place.testbed)
        return every[subject.metric.id, subject.statistic]


@lru_cache(maxsize=1)  # an index of a million values is large: of no other is anything kept
def _histories(index: Index) -> _Histories:
    return _Histories(index)


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show the chosen scenario, or the one measured last."""
    cells = source.index.cells().sort_values("newest", ascending=False)
    instead = ("See ", Link("the scenarios of this store", address("overview")), ".")
    scenario = query.subject("Scenario", "scenario", _first(cells["scenario"]), (instead,))
    cells = cells[cells["scenario"] == scenario.value]
    testbed = query.one("Testbed", "testbed", _first(cells["testbed"]))
    cells = cells[cells["testbed"] == testbed.value]
    query.forget("version")  # of links from when each had a page
    along = query.one("Along", "along", _ALONG, "time")
    newest = query.one("Runs of each build", "runs", _NEWEST, "50")
    subjects = {subject.label: subject for subject in _subjects(cells)}
    metric = query.many("Metric", "metric", {label: label for label in subjects})
    over_releases = along.value == "release"
    histories = _histories(source.index)
    runs = histories.runs(scenario.value, testbed.value)
    builds, names = _builds(query, runs, over_releases=over_releases)
    if cells.empty:
        return Document("Scenario", empty_store(source))
    place = _LoadPlace(scenario.value, testbed.value, int(newest.value), over_releases)
    if not metric.chosen:
        metric = replace(metric, chosen=_default(list(subjects.values()), place, names[0], source))
    choices = [scenario, metric, builds, along, newest]
    choices += [testbed] if len(testbed.options) > 1 else []
    gap = find_gap(gaps_here(source), place.scenario, place.testbed)
    hole = _hole(gap, source)
    drawn = [
        (subject, lines, histories.chart(place, subject, names, hole))
        for subject in map(subjects.__getitem__, metric.chosen)
        if (lines := histories.lines(place, subject, names))
    ]
    blocks = (
        *(gaps_notice([gap]) if gap else ()),
        *broken_in(source),
        Filters(tuple(choices)),
        *change_points(drawn, histories.list_machine_changes(place), source),
        *build_charts(drawn),
        *_others(subjects, metric, place, names[0], source),
        _table_of_runs(runs, names, source, over_releases=over_releases),
    )
    likely = (_turned(query.resolved(), along), _turned(query.resolved(), newest))
    return Document(scenario.value, blocks, lead=_lead(runs, place, source), likely=likely)


def _hole(gap: Gap | None, source: ScreenSource) -> tuple[datetime, datetime] | None:
    """Say from when to when nothing was measured; to the hour, so that charts can be kept."""
    if gap is None or gap.last is None or gap.testbed != gap.last.testbed:
        return None
    return gap.last.started_at, source.now.replace(minute=0, second=0, microsecond=0)


def _turned(here: Address, choice: ChoiceField) -> Address:
    """The same with the option after the one that is chosen."""
    options = list(choice.options)
    then = options[(options.index(choice.value) + 1) % len(options)]
    kept = here.without(choice.parameter).parameters
    picked = () if then == choice.default else ((choice.parameter, then),)
    return Address(here.screen, (*kept, *picked))


def _first(names: pd.Series) -> Mapping[str, str]:
    return {str(name): str(name) for name in dict.fromkeys(names.tolist())}


def _subjects(cells: pd.DataFrame) -> list[Subject]:
    """Every metric that this hybridwatch knows, what matters most first."""
    pairs = cells[["metric", "statistic"]].drop_duplicates().sort_values(["metric", "statistic"])
    known = [
        Subject(find_metric(metric), statistic)
        for metric, statistic in pairs.itertuples(index=False)
        if kind_of(metric) is not None
    ]
    # One of each first: four contracts would leave no room for what users feel.
    seen: dict[str, int] = {}
    ranks = {}
    for subject in known:
        family = subject.metric.id.partition(".")[0]
        nth = seen[family] = seen.get(family, -1) + 1
        key = _KEY.index(family) if family in _KEY else len(_KEY)
        ranks[subject] = (nth if key < len(_KEY) else len(known), key)
    return sorted(known, key=ranks.__getitem__)


def _default(
    subjects: Sequence[Subject], place: _LoadPlace, name: str, source: ScreenSource
) -> tuple[str, ...]:
    """What is drawn when nothing is chosen: the contract that was broken most, then what changed.

    A contract that always held is a line of zeros: the table of other metrics has it.
    """
    histories = _histories(source.index)

    def broken(subject: Subject) -> float:
        return float(histories.read_levels(place, subject)["value"].max())

    def is_steady(subject: Subject) -> bool:
        return not any(line.history.points for line in histories.medians(place, subject, name))

    contracts = [subject for subject in subjects if subject.metric.kind is Kind.EXACT]
    others = [subject for subject in subjects if subject.metric.kind is not Kind.EXACT]
    worst = sorted(filter(broken, contracts), key=broken, reverse=True)[:1]
    chosen = [*worst, *sorted(others, key=is_steady)] or contracts
    return tuple(subject.label for subject in chosen[:_CHARTS])


def _builds(
    query: ViewQuery, runs: pd.DataFrame, *, over_releases: bool
) -> tuple[ChoiceField, tuple[str, ...]]:
    """Read which builds are wanted; else the last measured, engines bad on purpose last."""
    is_bad = runs["bad"].to_numpy()[::-1]
    every = runs["line"].astype(object).to_numpy()[::-1]
    healthy = dict.fromkeys(every[~is_bad].tolist())
    ordered = [*healthy, *(line for line in dict.fromkeys(every.tolist()) if line not in healthy)]
    labels = dict(zip(runs["build"], runs["line"], strict=True))
    choice = query.many("Build", "build", {line: line for line in ordered}, labels)
    names = dict(zip(every, list_line_names(runs, over_releases=over_releases)[::-1], strict=True))
    if choice.chosen:
        return choice, tuple(dict.fromkeys(names[line] for line in choice.chosen))
    lines = tuple(dict.fromkeys(names[line] for line in ordered))[:_LINES]
    # Over releases a line is many builds, and naming them all would say nothing.
    return choice if over_releases else replace(choice, chosen=lines), lines


def _lead(runs: pd.DataFrame, place: _LoadPlace, source: ScreenSource) -> Words:
    last = runs["started_at"].max().to_pydatetime()
    counted = plural(runs["record"].nunique(), "run")
    return (
        f"version {runs['version'].iloc[-1]} · {place.testbed} · {counted}, newest ",
        source.ago(last),
    )


def _others(
    subjects: Mapping[str, Subject],
    metric: ChoiceField,
    place: _LoadPlace,
    name: str,
    source: ScreenSource,
) -> Iterator[Block]:
    """The metrics that are not drawn, of the build measured last, each with a link that does."""
    rest = [subject for label, subject in subjects.items() if label not in metric.chosen]
    if not rest:
        return
    columns = ("metric", Column("newest median", number=True), "last medians", "change points")
    rows = [
        _other(subject, line, place)
        for subject in rest
        for line in _histories(source.index).medians(place, subject, name)
    ]
    title = f"{plural(len(rows), 'more metric')} of {name}"
    yield Folded(title, (Table("Other metrics", columns, tuple(rows)),))


def _other(subject: Subject, line: Line, place: _LoadPlace) -> Row:
    values = line.levels["value"].tolist()
    shown = address(
        "scenario", scenario=place.scenario, testbed=place.testbed, metric=subject.label
    )
    states = [point.state.value for point in line.history.points]
    return (
        Link(subject.label, shown),
        Cell(numbers.value(values[-1], subject.metric), raw=values[-1]),
        Cell(sparkline=tuple(values[-_SPARK:])),
        ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "none",
    )


def _table_of_runs(
    runs: pd.DataFrame, names: Sequence[str], source: ScreenSource, *, over_releases: bool
) -> Block:
    scenario = str(runs["scenario"].iloc[0])
    chosen = pd.Series(list_line_names(runs, over_releases=over_releases), index=runs.index)
    records = runs.loc[chosen.isin(names), "record"].iloc[::-1]
    rows = {row.record: row for row in runs_by_id(source.index, scenario).values()}
    wanted = controls_last(rows[record] for record in dict.fromkeys(records.tolist()))
    columns = ("verdict", "run, baseline → contender", Column("what", wide=True), "measured")
    shown_rows = wanted[:_RUNS]
    headlines = build_headlines(shown_rows, source.index)
    entries = [
        (
            verdict_cell(row),
            Cell(Link(row.run, address("run", run=row.run)), " → ".join(row.builds)),
            headlines[row.record],
            source.ago(row.started_at),
        )
        for row in shown_rows
    ]
    shown = f"Runs of these builds: {len(entries)} of {len(wanted)}, newest first"
    more = Link("every run of this scenario", address("runs", scenario=scenario))
    return Section(shown, (Table("Runs", columns, tuple(entries)), Paragraph(more, quiet=True)))
