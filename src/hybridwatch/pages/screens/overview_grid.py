"""The overview's grid as a table: where every scenario stands, and since when."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.alerts import reds_within_luck
from hybridwatch.history.overview_rows import (
    COLUMNS,
    CellStatus,
    GridRow,
    VerdictRow,
    since_when,
)
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Column,
    Folded,
    Grade,
    Inline,
    Line,
    Link,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.screens.screen import ScreenSource

_ROWS: Final = 30
_QUIET: Final = (Verdict.IMPROVEMENT, Verdict.EQUIVALENT)


@dataclass(frozen=True, slots=True)
class _Stands:
    """Knows how a row stands: what was not measured in time, and since when a verdict holds."""

    unmeasured: Sequence[Gap]
    source: ScreenSource

    def gap(self, row: GridRow) -> Gap | None:
        """What was not measured in time of a row."""
        places = {(row.scenario, row.testbed), (row.scenario, "")}
        return next((g for g in self.unmeasured if (g.scenario, g.testbed) in places), None)

    def verdict(self, row: GridRow) -> Verdict:
        """The loudest verdict; missing where nothing was measured in time."""
        return Verdict.MISSING if self.gap(row) else row.loudest.verdict

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
            return Cell(since, ("since ", when, f", then {loudest.verdict.value}"), gap.reason)
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
        "scenario",
        scenario=found.scenario,
        testbed=found.testbed,
        metric=names,
        build=builds,
    )


def standings(
    rows: Sequence[GridRow], latest: pd.DataFrame, unmeasured: Sequence[Gap], source: ScreenSource
) -> Iterator[Block]:
    """Lay out the grid, the loudest rows first: what is not settled, and folded what is.

    ``latest`` has every newest verdict that was chosen, so that older pairs of builds are counted.
    What was not measured in time is never without trouble.
    """
    if not rows:
        yield Paragraph(
            "Apart from controls, no run compares two builds yet, or none that was asked for."
        )
        return
    stands = _Stands(unmeasured, source)
    loud = [row for row in rows if stands.verdict(row) not in _QUIET]
    # Nothing is known of what was not measured: louder than what is known to be bad.
    loud.sort(key=lambda row: ORDER.index(stands.verdict(row)))
    calm = [row for row in rows if stands.verdict(row) in _QUIET]
    blocks: list[Block] = [Paragraph(_counted(map(stands.verdict, rows)))]
    if shown := loud[:_ROWS]:
        blocks.append(_table("Where everything stands", shown, stands))
    for title, rest in (
        (f"{plural(len(loud) - _ROWS, 'more scenario')} not settled", loud[_ROWS:]),
        (f"{plural(len(calm), 'scenario')} without trouble", calm),
    ):
        if rest:
            blocks.append(Folded(title, (_table(title, rest, stands),)))
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
    parts: list[Inline] = []
    for verdict in ORDER:
        if found[verdict]:
            parts += [Grade(verdict, plural(found[verdict], "scenario")), "  "]
    return tuple(parts)


def _table(title: str, rows: Sequence[GridRow], stands: _Stands) -> Table:
    columns = (Column("loudest"), Column("scenario"), *map(Column, COLUMNS))
    several = len({row.testbed for row in rows}) > 1
    return Table(title, columns, tuple(_row(row, stands, show_testbed=several) for row in rows))


def _row(row: GridRow, stands: _Stands, *, show_testbed: bool) -> tuple[Cell | Inline, ...]:
    pairs = [" → ".join(pair) for pair in row.pairs]
    builds = f" · {several(contender for _, contender in row.pairs)}"
    place = f" · {row.testbed}" if show_testbed else ""
    view = address("scenario", scenario=row.scenario, testbed=row.testbed)
    return (
        stands.cell(row),
        Cell(
            Link(row.scenario, view),
            (stands.source.ago(row.newest), builds + place),
            title="\n".join(pairs),
        ),
        *(_cell(row, name, stands) for name in COLUMNS),
    )


def _cell(row: GridRow, name: str, stands: _Stands) -> Cell | Inline:
    standing = row.cells.get(name)
    if standing is None:
        return Cell(numbers.ABSENT, title="not measured")
    alike = row.counted[name]
    parts = [f"{standing.row.baseline} → {standing.row.contender}"]
    if alike > 1:
        parts.append(f"the loudest of {alike}")
    if standing.row.stale:
        parts.append("a later run no longer tells")
    if is_luck := stands.is_luck(standing):
        parts.append("no more than chance gives from run to run: no alert until it repeats")
    drawn = standing.name if _effect(standing) != standing.verdict.value else None
    run = address("run", run=standing.row.run, metric=drawn)
    history = render_history(standing.row, (standing.name,))
    old, luck = "(old)" if standing.row.stale else "", "(may be chance)" if is_luck else ""
    said = filter(None, (_short(standing, name), "run", old, luck))
    return Cell(
        Grade(standing.verdict, _effect(standing)),
        (Link(" ".join(said), run), " · ", Link("history", history)),
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
