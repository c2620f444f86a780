"""What the person on duty reads first: what is broken, what is new, where everything stands."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.policy import covers
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.record.role import Role
from hybridwatch.views import numbers
from hybridwatch.views.address import Address, address
from hybridwatch.views.asked import Asked
from hybridwatch.views.checkout import Checkout
from hybridwatch.views.comparisons import comparisons_of
from hybridwatch.views.controls import ControlRun, Sight, controls_of, newest_of
from hybridwatch.views.document import (
    Block,
    Cell,
    Choice,
    Column,
    Document,
    Filters,
    Folded,
    Grade,
    Inline,
    Kind,
    Line,
    Link,
    Notice,
    Paragraph,
    Section,
    Short,
    Table,
    When,
)
from hybridwatch.views.grid import (
    COLUMNS,
    LOUDEST,
    GridRow,
    Standing,
    Told,
    current,
    grid_of,
    heading_of,
    name_of,
    told_in,
)
from hybridwatch.views.history import age
from hybridwatch.views.screens.empty import broken_in, checkout_notice, empty_store
from hybridwatch.views.screens.screen import Source
from hybridwatch.views.sentence import plural

_RUNS_BACK: Final = 16
_NEWS: Final = 12
"""Changes that are shown at once; a bad night has hundreds."""
_NEWS_FOLDED: Final = 100
_ROWS: Final = 30
_NAMED: Final = 3
_SINCE: Final[Mapping[str, str]] = {"1": "yesterday", "7": "a week ago", "30": "a month ago"}
_QUIET: Final = (Verdict.IMPROVEMENT, Verdict.EQUIVALENT)
_TITLE: Final = "hybridwatch"


def show(source: Source, asked: Asked) -> Document:
    """Show what holds of the scenarios, builds and testbeds that are asked for."""
    index = source.index
    runs = index.runs()
    filters = (
        asked.many("Group", "group", _options(runs["group"])),
        asked.many("Build", "build", _options(runs["build"])),
        asked.many("Testbed", "testbed", _options(runs["testbed"])),
    )
    since = asked.one("Changed since", "since", _SINCE, "1")
    checkout = source.checkout()
    loud = (*_unmeasured(checkout, runs), *broken_in(source), *checkout_notice(checkout))
    if runs.empty:
        return Document(_TITLE, (*empty_store(source), *_unmeasured(checkout, runs)))
    controls = controls_of(index, checkout.scenarios)
    comparisons = comparisons_of(index)
    latest = _chosen(comparisons.latest, filters)
    rows = grid_of(current(latest), index, _RUNS_BACK)
    moment = source.now - timedelta(days=int(since.value))
    news = _chosen(comparisons.changed_since(moment), filters)
    blocks: tuple[Block, ...] = (
        *loud,
        *_missed(controls),
        Filters((*filters, since)),
        *_news(news, since, source),
        *_grid(rows, latest, source),
        *_controls(controls, source, folded=bool(rows)),
    )
    return Document(_TITLE, blocks, _lead(runs, source))


def _options(names: pd.Series) -> Mapping[str, str]:
    return {str(name): str(name) for name in sorted(names.unique())}


def _chosen(frame: pd.DataFrame, filters: Sequence[Choice]) -> pd.DataFrame:
    """Keep what is asked for."""
    group, build, testbed = (choice.chosen for choice in filters)
    kept = pd.Series(data=True, index=frame.index)
    if group:
        kept &= frame["group"].isin(group)
    if build:
        kept &= frame["baseline"].isin(build) | frame["contender"].isin(build)
    if testbed:
        kept &= frame["testbed"].isin(testbed)
    return frame[kept]


def _lead(runs: pd.DataFrame, source: Source) -> Line:
    newest = runs["started_at"].max().to_pydatetime()
    records = plural(source.index.counts["runs"], "record")
    return (
        f"{records} of {plural(runs['scenario'].nunique(), 'scenario')}, newest ",
        When(newest, age(newest, source.now)),
        " · ",
        Short(source.results.resolve().name, str(source.results.resolve())),
    )


def _unmeasured(checkout: Checkout, runs: pd.DataFrame) -> Iterator[Notice]:
    """Name the scenarios that the gate expects and that have no record: never green."""
    there = set(runs["scenario"])
    absent = [
        scenario
        for scenario in sorted(checkout.scenarios)
        if scenario not in there
        and any(covers(name, scenario) for name in checkout.policy.expected)
    ]
    if absent:
        title = f"{plural(len(absent), 'expected scenario')} without a record"
        lines = (*absent, "Measure them: hybridwatch run " + " ".join(absent))
        yield Notice(Kind.LOUD, title, lines)


def _missed(controls: Sequence[ControlRun]) -> Iterator[Notice]:
    missed = [c for c in newest_of(controls).values() if c.sight is Sight.MISSED]
    if missed:
        lines = tuple(
            (Link(c.scenario, address("run", run=c.run)), f": green without {', '.join(c.lost)}")
            for c in missed
        )
        yield Notice(Kind.LOUD, f"{plural(len(missed), 'known-bad control')} not caught", lines)


def _news(news: pd.DataFrame, since: Choice, source: Source) -> Iterator[Block]:
    """Every comparison that says something else than it did: bad news and recoveries."""
    bad = {verdict.value for verdict in Verdict if verdict.is_bad_news}
    told = news["verdict"].isin(bad | {Verdict.IMPROVEMENT.value}) | news["before"].isin(bad)
    rows = [_changed(before, part, source) for before, part in _alike(news[told])]
    rows.sort(key=lambda row: LOUDEST.index(row[0]))
    columns = (
        Column("now"),
        Column("scenario, baseline → contender"),
        Column("metrics", wide=True),
        Column("before"),
        Column("measured"),
    )
    title = f"Changed since {since.told}"
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(title, columns, tuple(rows[:_NEWS])))
    else:
        blocks.append(Paragraph("No comparison got worse, failed or recovered."))
    if rest := rows[_NEWS:]:
        shown = f"{plural(len(rest), 'more change')}" + (
            f", the first {_NEWS_FOLDED}" if len(rest) > _NEWS_FOLDED else ""
        )
        blocks.append(Folded(shown, (Table("More changes", columns, tuple(rest[:_NEWS_FOLDED])),)))
    if calm := int((~told).sum()):
        said = f"{plural(calm, 'other comparison')} changed without being news, such as a first "
        blocks.append(Paragraph(f"{said}measurement that found nothing.", quiet=True))
    yield Section(title, tuple(blocks))


def _alike(news: pd.DataFrame) -> Iterator[tuple[str, list[Told]]]:
    """Put together what moved alike in one scenario on one testbed, the newest first."""
    found: dict[tuple[str, ...], list[Told]] = {}
    both = zip(told_in(news), news["before"].tolist(), strict=True)
    for told, before in reversed(list(both)):
        key = (told.scenario, told.testbed, told.verdict, before)
        found.setdefault(key, []).append(told)
    for (*_, before), part in found.items():
        yield before, part


def _changed(before: str, rows: Sequence[Told], source: Source) -> tuple[Any, ...]:
    first, when = rows[0], rows[0].started_at.to_pydatetime()
    pairs = dict.fromkeys(_pair(row) for row in rows)
    sizes: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: -abs(row.effect) if row.effect == row.effect else 0.0):
        sizes.setdefault(_named(row), _size(row))
    names = list(dict.fromkeys(_named(row) for row in sorted(rows, key=_column)))
    named = [f"{name}{sizes[name]}" for name in names[:_NAMED]]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    view = _history(first, names[:_NAMED])
    return (
        Verdict(first.verdict),
        Cell(Link(first.scenario, view), _several(pairs)),
        ", ".join(named) + more,
        Verdict(before) if before else "first time",
        Cell(When(when, age(when, source.now)), Link("run", address("run", run=first.run))),
    )


def _column(row: Told) -> int:
    return list(COLUMNS).index(heading_of(row.metric))


def _pair(found: Told | Standing) -> str:
    return f"{found.baseline} → {found.contender}"


def _several(pairs: Iterable[str]) -> str:
    first, *rest = pairs
    return f"{first} and {len(rest)} more" if rest else first


def _named(row: Told) -> str:
    """Name a verdict's metric as the scenario's screen does."""
    return name_of(row.metric, row.statistic)[1]


def _size(row: Told) -> str:
    metric, _ = name_of(row.metric, row.statistic)
    return f" {numbers.effect(row.effect, metric.kind)}" if metric and row.effect else ""


def _history(found: Told | Standing, names: Sequence[str]) -> Address:
    """The history of some metrics of the two builds of a verdict."""
    builds = dict.fromkeys((found.baseline, found.contender))
    return address(
        "scenario",
        scenario=found.scenario,
        testbed=found.testbed,
        metric=names,
        build=builds,
    )


def _grid(rows: Sequence[GridRow], latest: pd.DataFrame, source: Source) -> Iterator[Block]:
    if not rows:
        yield Paragraph(
            "Apart from controls, no run compares two builds yet, or none that was asked for."
        )
        return
    loud = [row for row in rows if row.loudest.verdict not in _QUIET]
    calm = [row for row in rows if row.loudest.verdict in _QUIET]
    blocks: list[Block] = [Paragraph(_counted(rows))]
    if shown := loud[:_ROWS]:
        blocks.append(_table("Where everything stands", shown, source))
    for title, rest in (
        (f"{plural(len(loud) - _ROWS, 'more scenario')} not settled", loud[_ROWS:]),
        (f"{plural(len(calm), 'scenario')} without trouble", calm),
    ):
        if rest:
            blocks.append(Folded(title, (_table(title, rest, source),)))
    pairs = len(latest[["scenario", "baseline", "contender", "testbed"]].drop_duplicates())
    counted = sum(len(row.pairs) for row in rows)
    said = "A cell is the loudest verdict of its metrics, over all builds measured within a day of "
    said += "the scenario's newest run; the line is the contender's last medians. "
    if pairs > counted:
        said += f"{plural(pairs - counted, 'older pair')} of builds: choose a build above."
    blocks.append(Paragraph(said, quiet=True))
    yield Section("Where everything stands", tuple(blocks))


def _counted(rows: Sequence[GridRow]) -> Line:
    """How many scenarios have which verdict as their loudest."""
    found = Counter(row.loudest.verdict for row in rows)
    said: list[Inline] = []
    for verdict in LOUDEST:
        if found[verdict]:
            said += [Grade(verdict, plural(found[verdict], "scenario")), "  "]
    return tuple(said)


def _table(title: str, rows: Sequence[GridRow], source: Source) -> Table:
    columns = (Column("loudest"), Column("scenario"), *map(Column, COLUMNS))
    told = len({row.testbed for row in rows}) > 1
    return Table(title, columns, tuple(_row(row, source, told_testbed=told) for row in rows))


def _row(row: GridRow, source: Source, *, told_testbed: bool) -> tuple[Cell | Inline, ...]:
    pairs = [" → ".join(pair) for pair in row.pairs]
    builds = f" · {_several(contender for _, contender in row.pairs)}"
    place = f" · {row.testbed}" if told_testbed else ""
    view = address("scenario", scenario=row.scenario, testbed=row.testbed)
    return (
        row.loudest.verdict,
        Cell(
            Link(row.scenario, view),
            (When(row.newest, age(row.newest, source.now)), builds + place),
            title="\n".join(pairs),
        ),
        *(_cell(row, name) for name in COLUMNS),
    )


def _cell(row: GridRow, name: str) -> Cell | Inline:
    standing = row.cells.get(name)
    if standing is None:
        return Cell(numbers.ABSENT, title="not measured")
    alike = row.counted[name]
    said = [f"{standing.baseline} → {standing.contender}"]
    if alike > 1:
        said.append(f"the loudest of {alike}")
    if standing.stale:
        said.append("a later run no longer tells")
    view = _history(standing, (standing.name,))
    return Cell(
        Grade(standing.verdict, _effect(standing)),
        Link(_short(standing, name) + (" (old)" if standing.stale else ""), view),
        title="\n".join(said),
        sparkline=standing.medians if len(standing.medians) > 1 else (),
    )


def _short(standing: Standing, heading: str) -> str:
    """Name a standing below a heading that says half of it."""
    wanted = COLUMNS[heading]
    if wanted == standing.name:
        return "history"
    return standing.name.removeprefix(wanted.rstrip("*")).strip()


def _effect(standing: Standing) -> str:
    metric = standing.metric
    told = numbers.effect(standing.effect, metric.kind) if metric else numbers.ABSENT
    return standing.verdict.value if told == numbers.ABSENT else told


def _controls(controls: Sequence[ControlRun], source: Source, *, folded: bool) -> Iterator[Block]:
    """Runs that are red on purpose, and those of equal sides: told apart, and told quietly."""
    newest = newest_of(controls).values()
    caught = sum(control.sight is Sight.CAUGHT for control in newest)
    equal = [control for control in controls if control.role is Role.A_A]
    alarms = sum(bool(control.alarms) for control in equal)
    if not controls:
        return
    told: list[Inline] = [f"Known-bad controls caught: {caught} of {len(newest)}"]
    if equal:
        told.append(f" · runs of equal sides with an alarm: {alarms} of {len(equal)}")
    told += " · ", Link("does the suite see?", address("sees"))
    columns = (
        Column("seen"),
        Column("scenario, engine bad on purpose"),
        Column("by", wide=True, title="What told it from the healthy engine, with and without"),
        Column("measured"),
    )
    rows = tuple(
        (
            Grade(Verdict.EQUIVALENT, "caught")
            if control.sight is Sight.CAUGHT
            else Grade(Verdict.FAILED, "not caught")
            if control.sight is Sight.MISSED
            else "not asked",
            Cell(Link(control.scenario, address("run", run=control.run)), control.builds[1]),
            _seen(control),
            When(control.started_at, age(control.started_at, source.now)),
        )
        for control in sorted(newest, key=lambda c: (c.sight is Sight.CAUGHT, c.scenario))
    )
    table: Block = Table("Controls", columns, rows)
    if folded:
        table = Folded("Every known-bad control", (table,))
    yield Section("Controls", (Paragraph(tuple(told)), *((table,) if rows else ())))


def _seen(control: ControlRun) -> str:
    """Say what the engine without its fix did otherwise."""
    told = []
    for one in control.alarms:
        metric, name = name_of(one.metric, one.statistic)
        if metric is not None and one.is_telling:
            sides = " → ".join(numbers.value(side, metric) for side in (one.old, one.new))
            told.append(f"{name} {sides}")
    return ", ".join(told[:_NAMED]) or "nothing"
