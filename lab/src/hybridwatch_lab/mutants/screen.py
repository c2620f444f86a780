"""The kill table: which planted faults the suite sees."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.errors import RecordError, ScenarioError
from hybridwatch.pages.document import (
    Block,
    Command,
    Document,
    Facts,
    Folded,
    Inline,
    Notice,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.document import Cell as Shown
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.scenarios.fixes import Mutant
from hybridwatch_lab.mutants.table import (
    MutantCell,
    MutantState,
    Score,
    catalogue,
    compute_score,
    false_alarms,
    halves,
    list_scenarios,
    read_cells,
    render_half,
    render_kill,
    rows,
    table_files,
)

_LEAD: Final = (
    "A mutant is a fault that is switched on in a live engine; here is which of them each scenario "
    "shows, by what, and in how many seconds."
)


def show(source: ScreenSource, query: ViewQuery) -> Document:  # noqa: ARG001 (nothing can be chosen)
    """Show the kill table of every build that has one."""
    try:
        mutants = catalogue()
    except ScenarioError as error:
        wrong = Notice("A file of mutants cannot be read", tuple(str(error).splitlines()))
        return Document("Mutants", (wrong,), lead=_LEAD)
    blocks: list[Block] = []
    for file in table_files(source.results):
        try:
            cells = read_cells(file)
        except RecordError as error:
            blocks.append(Notice("A kill table cannot be read", (str(error),)))
        else:
            blocks.append(Section(file.stem, tuple(_of_build(cells, mutants))))
    if not blocks:
        hint = "No mutant was measured yet. It takes a while; a run that is stopped goes on later:"
        blocks = [Paragraph(hint), Command("hybridwatch mutants smoke")]
    return Document("Mutants", tuple(blocks), lead=_LEAD)


def _of_build(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> Iterator[Block]:
    alarms = false_alarms(cells)
    if alarms:
        title = plural(len(alarms), "false alarm")
        lines = tuple(f"{one.scenario}, {one.mutant}: {one.detail}" for one in alarms)
        yield Notice(title, lines)
    whole = compute_score(cells, mutants)
    parts = {half: compute_score(cells, members) for half, members in halves(mutants).items()}
    tried = len({cell.mutant for cell in cells} & mutants.keys())
    yield Facts(
        (
            ("Mutants in the table", f"{tried} of {len(mutants)}"),
            *((f"Killed, {render_half(half)}", _killed(score)) for half, score in parts.items()),
            ("Killed, together", _killed(whole)),
            ("Survivors", ", ".join(whole.survivors) or "none"),
            ("Not reached", str(len(whole.unreached) or "none")),
        )
    )
    if whole.unreached:
        title = f"{plural(len(whole.unreached), 'mutant')} not reached"
        yield Folded(title, (Paragraph(", ".join(whole.unreached)),))
    yield _table(cells, mutants)


def _killed(score: Score) -> str:
    reached = len(score.killed) + len(score.survivors)
    share = "" if score.share is None else f", {score.share:.0%}"
    return f"{len(score.killed)} of {reached} reached{share}"


def _table(cells: Sequence[MutantCell], mutants: Mapping[str, Mutant]) -> Table:
    scenarios = list_scenarios(cells)
    columns = ("mutant", "half", "mechanism", *scenarios)
    lines: list[tuple[Shown | Inline, ...]] = []
    for name, mutant, mine in rows(cells, mutants):
        what = Shown(name, title=mutant.what) if mutant is not None else Shown("healthy engine")
        facts = (mutant.half, mutant.mechanism) if mutant is not None else ("", "")
        lines.append((what, *facts, *(_shown(mine.get(one)) for one in scenarios)))
    return Table("Kill table", columns, tuple(lines))


def _shown(cell: MutantCell | None) -> Shown:
    words = render_kill(cell)
    if cell is None or cell.state is not MutantState.KILLED:
        return Shown(words)
    return Shown(words, title=cell.detail)
