"""What the person on duty reads first: what is broken, what is new, where everything stands."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import pandas as pd

from hybridwatch.analysis.alert_timeline import AlertSubject
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import TriageError
from hybridwatch.history.alerts import reds_within_luck
from hybridwatch.history.controls import ControlRun, find_newest, list_controls
from hybridwatch.history.overview_rows import (
    COLUMNS,
    CellStatus,
    GridRow,
    VerdictRow,
    build_grid,
    current,
    since_when,
)
from hybridwatch.history.runs import RunRow, latest_comparisons
from hybridwatch.pages.address import EVERY, Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Document,
    Filters,
    Folded,
    Grade,
    Inline,
    Line,
    Link,
    Paragraph,
    Row,
    Section,
    Short,
    Table,
)
from hybridwatch.pages.query import ViewQuery, name_options
from hybridwatch.pages.screens.histories import machine_notice
from hybridwatch.pages.screens.overview_news import news_section, night_blocks
from hybridwatch.pages.screens.runs import are_chosen
from hybridwatch.pages.screens.screen import (
    ScreenSource,
    alerts_here,
    broken_in,
    checkout_notice,
    empty_store,
    find_gap,
    gaps_here,
    gaps_notice,
    missed_controls,
    trouble_notice,
)
from hybridwatch.pages.screens.sees import controls_table
from hybridwatch.records.identity import Role
from hybridwatch.reports.alert_text import describe_place, group_text
from hybridwatch.reports.sentence import bugs_caught

_RUNS_BACK: Final = 16
_NAMED: Final = 3
_SINCE: Final[Mapping[str, str]] = {"1": "yesterday", "7": "a week ago", "30": "a month ago"}
_TITLE: Final = "hybridwatch"
_GRID_ROWS: Final = 30
_UNDECIDED: Final = (
    "The throughput is as before, nothing got worse; of these no change could be shown"
)


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show what holds of the chosen scenarios, builds and testbeds."""
    index = source.index
    runs = index.runs()
    filters = (
        query.many("Group", "group", name_options(runs["group"])),
        query.many(
            "Build",
            "build",
            name_options(runs["line"]),
            dict(zip(runs["build"], runs["line"], strict=True)),
        ),
        query.many("Testbed", "testbed", name_options(runs["testbed"])),
    )
    since = query.one("Changed since", "since", _SINCE, "1")
    checkout = source.checkout()
    unmeasured = gaps_here(source)
    loud = (*gaps_notice(unmeasured), *broken_in(source), *checkout_notice(checkout))
    if runs.empty:
        return Document(_TITLE, (*empty_store(source), *gaps_notice(unmeasured)))
    controls = list_controls(index, checkout.scenarios)
    latest = _chosen(latest_comparisons(index), filters)
    rows = build_grid(current(latest), index, _RUNS_BACK)
    moment = source.now - timedelta(days=int(since.value))
    blocks: tuple[Block, ...] = (
        *_open_alerts(source),
        *_upgrade(latest),
        *night_blocks(source, partial(_is_run_chosen, filters)),
        *loud,
        *machine_notice(source, moment),
        *missed_controls(find_newest(controls).values(), ": green without {}"),
        Filters((*filters, since)),
        news_section(latest, partial(_is_chosen, filters), since, moment, source),
        *standings(rows, latest, unmeasured, source),
        *_controls(controls, source, folded=bool(rows)),
    )
    return Document(_TITLE, blocks, _lead(runs, source))


def _chosen(frame: pd.DataFrame, filters: Sequence[ChoiceField]) -> pd.DataFrame:
    """Keep what is chosen."""
    group, build, testbed = (choice.chosen for choice in filters)
    kept = pd.Series(data=True, index=frame.index)
    if group:
        kept &= frame["group"].isin(group)
    if build:
        kept &= frame["baseline"].isin(build) | frame["contender"].isin(build)
    if testbed:
        kept &= frame["testbed"].isin(testbed)
    return frame[kept]


def _is_chosen(filters: Sequence[ChoiceField], subject: AlertSubject) -> bool:
    """Whether a subject is among what is chosen."""
    group = subject.scenario.partition("/")[0]
    return are_chosen(filters, group, (subject.baseline, subject.contender), subject.testbed)


def _is_run_chosen(filters: Sequence[ChoiceField], row: RunRow) -> bool:
    """Whether a run is among what is chosen."""
    return are_chosen(filters, row.scenario.partition("/")[0], row.lines, row.testbed)


def _lead(runs: pd.DataFrame, source: ScreenSource) -> Line:
    newest = runs["started_at"].max().to_pydatetime()
    records = plural(source.index.counts["runs"], "record")
    return (
        f"{records} of {plural(runs['scenario'].nunique(), 'scenario')}, newest ",
        source.ago(newest),
        " · ",
        Short(source.results.resolve().name, str(source.results.resolve())),
    )


def _open_alerts(source: ScreenSource) -> Iterator[Block]:
    """Count the causes that have no answer, and lead to the newest ones."""
    try:
        found = [group for group in alerts_here(source) if group.status is Status.OPEN]
    except TriageError as error:
        yield trouble_notice("The alerts cannot be shown", error)
        return
    every = address("alerts")
    if not found:
        yield Paragraph(("No ", Link("alert", every), " is open."), quiet=True)
        return
    blocking = sum(group.rank is Action.BLOCK for group in found)
    line: list[Inline] = [
        Link(f"{plural(len(found), 'open alert')}", every),
        f", {blocking} of them would block{', the newest first' if len(found) > 1 else ''}: ",
    ]
    # Of one night the most urgent comes first, as it was.
    found.sort(key=lambda group: group.opened_by.started_at.date(), reverse=True)
    for nth, group in enumerate(found[:_NAMED]):
        text = group_text(group)
        size = f", {text.detail}" if len(group.current) > 1 and text.detail else ""
        name = f"{describe_place(group)}: {text.what.lower()}{size}"
        line += [", " if nth else "", Link(name, address("alerts", alert=group.key))]
        line += [" (opened ", source.ago(group.opened_by.started_at), ")"]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    yield Paragraph((*line, f"{more}."))


def _upgrade(latest: pd.DataFrame) -> Iterator[Block]:
    """Lead to what the newest build changes in every scenario, if any two are compared."""
    if not latest.empty:
        way = address("compare", scenario=EVERY)
        line = "Can you upgrade? See ", Link("what the newest build changes", way), "."
        yield Paragraph(line, quiet=True)


def _controls(
    controls: Sequence[ControlRun], source: ScreenSource, *, folded: bool
) -> Iterator[Block]:
    """Runs that are red on purpose, and those of equal sides: kept apart, and said quietly."""
    newest = find_newest(controls).values()
    equal = [control for control in controls if control.role is Role.A_A]
    alarms = sum(control.regressions > 0 for control in equal)
    if not controls:
        return
    parts: list[Inline] = [bugs_caught(newest) if newest else "No known-bad control"]
    if equal:
        parts.append(f" · runs of equal sides with an alarm: {alarms} of {len(equal)}")
    parts += " · ", Link("does the suite see?", address("sees"))
    table: Block = controls_table(newest, source)
    if folded:
        table = Folded("Every known-bad control", (table,))
    yield Section("Controls", (Paragraph(tuple(parts)), *((table,) if newest else ())))


@dataclass(frozen=True, slots=True)
class _GridStatus:
    """Finds the status of a row: a measurement that is overdue, and since when a verdict holds."""

    unmeasured: Sequence[Gap]
    source: ScreenSource

    def gap(self, row: GridRow) -> Gap | None:
        """The overdue measurement of a row, if any."""
        return find_gap(self.unmeasured, row.scenario, row.testbed)

    def verdict(self, row: GridRow) -> Verdict:
        """The row's verdict; missing where nothing was measured in time."""
        return Verdict.MISSING if self.gap(row) else row.verdict

    def is_luck(self, standing: CellStatus) -> bool:
        """Whether it is red by no more than chance gives from run to run."""
        row = standing.row
        red = (row.run, row.metric, row.statistic)
        is_red = standing.verdict is Verdict.REGRESSION
        return is_red and red in reds_within_luck(self.source.index)

    def cell(self, row: GridRow) -> Cell:
        """The verdict, and since when it holds."""
        gap, loudest = self.gap(row), row.loudest
        if gap is not None:
            since = Grade(Verdict.MISSING, "not measured")
            when = self.source.ago(row.newest)
            return Cell(since, ("since ", when, f", then {row.verdict.value}"), gap.reason)
        if row.undecided:
            return Cell(row.verdict, f"? {', '.join(row.undecided)}", _UNDECIDED)
        measured = loudest.row.started_at.to_pydatetime()
        moment = since_when(self.source.index).get(loudest.row.question, measured)
        return Cell(loudest.verdict, ("since ", self.source.ago(moment)))


def several(names: Iterable[str]) -> str:
    """Name the first and count the others."""
    first, *rest = names
    return f"{first} and {len(rest)} more" if rest else first


def render_history(found: VerdictRow, names: Sequence[str]) -> Address:
    """Lead to the history of some metrics of the two builds of a verdict."""
    builds = dict.fromkeys((found.baseline, found.contender))
    return address(
        "scenario", scenario=found.scenario, testbed=found.testbed, metric=names, build=builds
    )


def standings(
    rows: Sequence[GridRow], latest: pd.DataFrame, unmeasured: Sequence[Gap], source: ScreenSource
) -> Iterator[Block]:
    """Lay out the grid, the loudest rows first: what is not settled, and folded what is.

    ``latest`` has every newest verdict that was chosen, so that older pairs of builds are counted.
    """
    if not rows:
        yield Paragraph("Apart from controls, no run compares two builds yet, or none is chosen.")
        return
    status = _GridStatus(unmeasured, source)
    loud = [row for row in rows if not status.verdict(row).is_good_news]
    # Nothing is known of what was not measured: louder than what is known to be bad.
    loud.sort(key=lambda row: ORDER.index(status.verdict(row)))
    calm = [row for row in rows if status.verdict(row).is_good_news]
    blocks: list[Block] = [Paragraph(_counted(map(status.verdict, rows)))]
    if shown := loud[:_GRID_ROWS]:
        blocks.append(_table("Where everything stands", shown, status))
    for title, rest in (
        (f"{plural(len(loud) - _GRID_ROWS, 'more scenario')} not settled", loud[_GRID_ROWS:]),
        (f"{plural(len(calm), 'scenario')} without trouble", calm),
    ):
        if rest:
            blocks.append(Folded(title, (_table(title, rest, status),)))
    pairs = len(latest[["scenario", "baseline", "contender", "testbed"]].drop_duplicates())
    counted = sum(len(row.pairs) for row in rows)
    hint = "A cell is the loudest verdict of its metrics, over all builds measured within a day of "
    hint += "the scenario's newest run; the line is the contender's last medians. "
    if pairs > counted:
        hint += f"{plural(pairs - counted, 'older pair')} of builds: choose a build above."
    blocks.append(Paragraph(hint, quiet=True))
    yield Section("Where everything stands", tuple(blocks))


def _counted(verdicts: Iterable[Verdict]) -> Line:
    """How many scenarios have which verdict as their loudest."""
    found = Counter(verdicts)
    grades = [Grade(one, plural(found[one], "scenario")) for one in ORDER if found[one]]
    return tuple(part for grade in grades for part in (grade, "  "))


def _table(title: str, rows: Sequence[GridRow], status: _GridStatus) -> Table:
    columns = ("loudest", "scenario", *COLUMNS)
    several = len({row.testbed for row in rows}) > 1
    return Table(title, columns, tuple(_row(row, status, show_testbed=several) for row in rows))


def _row(row: GridRow, status: _GridStatus, *, show_testbed: bool) -> Row:
    pairs = [" → ".join(pair) for pair in row.pairs]
    builds = f" · {several(contender for _, contender in row.pairs)}"
    place = (" · ", Short(row.testbed)) if show_testbed else ()
    view = address("scenario", scenario=row.scenario, testbed=row.testbed)
    return (
        status.cell(row),
        Cell(
            Link(row.scenario, view),
            (status.source.ago(row.newest), builds, *place),
            title="\n".join(pairs),
        ),
        *(_cell(row, name, status) for name in COLUMNS),
    )


def _cell(row: GridRow, name: str, status: _GridStatus) -> Cell | Inline:
    standing = row.cells.get(name)
    if standing is None:
        return Cell(numbers.ABSENT, title="not measured")
    alike = row.counted[name]
    parts = [f"{standing.row.baseline} → {standing.row.contender}"]
    if alike > 1:
        parts.append(f"the loudest of {alike}")
    if standing.row.stale:
        parts.append("a later run no longer tells")
    if is_luck := status.is_luck(standing):
        parts.append("no more than chance gives from run to run: no alert until it repeats")
    drawn = standing.name if _effect(standing) != standing.verdict.value else None
    run = address("run", run=standing.row.run, metric=drawn)
    history = render_history(standing.row, (standing.name,))
    old, luck = "(old)" if standing.row.stale else "", "(may be chance)" if is_luck else ""
    text = filter(None, (_short(standing, name), "run", old, luck))
    return Cell(
        Grade(standing.verdict, _effect(standing)),
        (Link(" ".join(text), run), " · ", Link("history", history)),
        title="\n".join(parts),
        sparkline=standing.medians if len(standing.medians) > 1 else (),
    )


def _short(standing: CellStatus, heading: str) -> str:
    """Name a standing below a heading that says half of it."""
    wanted = COLUMNS[heading]
    if wanted == standing.name:
        return ""
    return standing.name.removeprefix(wanted.rstrip("*")).strip()


def _effect(standing: CellStatus) -> str:
    metric = standing.metric
    effect = numbers.effect(standing.row.effect, metric.kind) if metric else numbers.ABSENT
    return standing.verdict.value if effect == numbers.ABSENT else effect
