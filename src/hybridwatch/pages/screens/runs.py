"""Every run, newest first and controls last, and the machines that they were measured on."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import zip_longest
from typing import Final

import pandas as pd

from hybridwatch.analysis.cause import CausePart, find_causes
from hybridwatch.analysis.policy import STRICT, Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.queries import Index
from hybridwatch.errors import RecordError
from hybridwatch.history.runs import RunRow, controls_last, runs_by_id
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import (
    Block,
    Cell,
    ChoiceField,
    Column,
    Document,
    Filters,
    Inline,
    Line,
    Link,
    Paragraph,
    Row,
    Section,
    Table,
)
from hybridwatch.pages.query import PagePart, ViewQuery, find_page, name_options
from hybridwatch.pages.screens.screen import ScreenSource, broken_in, empty_store
from hybridwatch.records.identity import Testbed
from hybridwatch.records.store import read_run
from hybridwatch.reports.sentence import summary

_FACTS: Final[Mapping[str, Callable[[Testbed], str]]] = {
    "processor": lambda testbed: testbed.cpu_model,
    "cores": lambda testbed: str(testbed.cores),
    "memory": lambda testbed: f"{testbed.memory_bytes / 1024**3:.1f} GiB",
    "kernel": lambda testbed: testbed.kernel,
    "GPUs": lambda testbed: _gpus(testbed),
    "driver": lambda testbed: testbed.driver or "-",
    "CUDA": lambda testbed: testbed.cuda or "-",
}
_READ: Final = ("scenario", "metric", "statistic", "verdict", "effect", "gate")


def _gpus(testbed: Testbed) -> str:
    """Name, memory and power limit of each kind, such as ``2 x NVIDIA H200, 140 GiB, 700 W``."""
    memory = [f", {size / 1024**3:.0f} GiB" for size in testbed.gpu_memory_bytes]
    limits = [f", {limit:.0f} W" for limit in testbed.gpu_power_limits_w]
    parts = zip_longest(testbed.gpus, memory, limits, fillvalue="")
    kinds = Counter(name + size + limit for name, size, limit in parts)
    listed = (f"{many} x {kind}" if many > 1 else kind for kind, many in kinds.items())
    return "; ".join(listed) or "none"


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """List the chosen runs, and all testbeds."""
    rows = list(runs_by_id(source.index).values())
    filters = (
        query.many("Scenario", "scenario", name_options(row.scenario for row in rows)),
        query.many(
            "Build", "build", name_options(b for row in rows for b in (*row.builds, *row.lines))
        ),
        query.many("Testbed", "testbed", name_options(row.testbed for row in rows)),
    )
    chosen = controls_last(
        row
        for row in rows
        if are_chosen(filters, row.scenario, (*row.builds, *row.lines), row.testbed)
    )
    part = find_page(chosen, query)
    title = "Runs and testbeds"
    if not rows:
        return Document(title, empty_store(source))
    blocks = (
        *broken_in(source),
        Filters(filters),
        *_list(part, plural(len(chosen), "run"), query.resolved(), source),
        _testbeds(rows, source),
    )
    return Document(title, blocks, lead=_lead(rows, source))


def are_chosen(filters: Sequence[ChoiceField], *found: str | Iterable[str]) -> bool:
    """Whether what each filter is about has a value among those chosen, if any is."""
    return all(
        not choice.chosen
        or not set(choice.chosen).isdisjoint([values] if isinstance(values, str) else values)
        for choice, values in zip(filters, found, strict=True)
    )


def _lead(rows: Sequence[RunRow], source: ScreenSource) -> Line:
    testbeds = plural(len({row.testbed for row in rows}), "testbed")
    start = f"{plural(len(rows), 'run')} on {testbeds}, newest "
    return (start, source.ago(rows[0].started_at), f" · {source.results}")


def _list(
    part: PagePart[RunRow], count: str, here: Address, source: ScreenSource
) -> Iterable[Block]:
    if not part.shown:
        yield Paragraph("No run is of this scenario, build and testbed.")
        return
    columns = (
        "verdict",
        "scenario, builds",
        Column("what", wide=True),
        Column("failed trials", number=True),
        "measured, run",
        "testbed",
    )
    headlines = build_headlines(part.shown, source.index)
    yield Table(
        "Runs", columns, tuple(_row(row, headlines[row.record], source) for row in part.shown)
    )
    if any(row.is_control for row in part.shown):
        yield Paragraph("Controls, which are bad on purpose, stand behind all others.", quiet=True)
    yield from part.ways(count, here, ("newer", "older"))


def _row(row: RunRow, headlines: str, source: ScreenSource) -> Row:
    return (
        verdict_cell(row),
        Cell(Link(row.scenario, address("run", run=row.run)), " → ".join(row.builds)),
        headlines,
        Cell(str(row.failures) if row.failures else "-", raw=row.failures),
        Cell(source.ago(row.started_at), row.run),
        row.testbed,
    )


def _testbeds(rows: Sequence[RunRow], source: ScreenSource) -> Section:
    counts = Counter(row.testbed for row in rows)
    newest = {row.testbed: row for row in reversed(rows)}
    newest = {name: newest[name] for name in counts}
    facts = {name: _facts(source, row) for name, row in newest.items()}
    columns: tuple[Column | str, ...] = (
        "testbed",
        *(Column(name, number=name in {"cores", "memory"}) for name in _FACTS),
        Column("runs", number=True),
        "newest",
    )
    cells: list[tuple[Inline, ...]] = [
        (
            Link(name, address("runs", testbed=name)),
            *facts[name],
            str(counts[name]),
            source.ago(row.started_at),
        )
        for name, row in newest.items()
    ]
    return Section(
        "Testbeds", (Paragraph(_differing(facts)), Table("Testbeds", columns, tuple(cells)))
    )


def _facts(source: ScreenSource, row: RunRow) -> tuple[str, ...]:
    try:
        testbed = read_run(source.results / row.record, bulk=False).testbed
    except RecordError:  # gone since it was listed; the list says what was known
        return ("?",) * len(_FACTS)
    return tuple(fact(testbed) for fact in _FACTS.values())


def _differing(facts: Mapping[str, tuple[str, ...]]) -> str:
    if len(facts) < 2:
        return "All runs are from one machine."
    columns = zip(*facts.values(), strict=True)
    differ = [name for name, values in zip(_FACTS, columns, strict=True) if len(set(values)) > 1]
    listed = ", ".join(differ) or "nothing that is known of them"
    return f"They differ in {listed}. Only numbers of one testbed are compared."


def build_headlines(rows: Sequence[RunRow], index: Index) -> Mapping[str, str]:
    """Say what became of each run, by its record; the run's own page says why an engine died."""
    verdicts = index.verdicts(records=[row.record for row in rows])
    found = dict(iter(verdicts.groupby("record", sort=False)))
    return {
        row.record: row.trouble or _headline(found.get(row.record, verdicts[:0])) for row in rows
    }


def _headline(verdicts: pd.DataFrame) -> str:
    causes = [cause_sentence(cause) for cause in find_causes(_parts(verdicts))]
    doubts = " ".join(filter(None, dict.fromkeys(verdicts["doubt"])))
    return summary(causes, [Verdict(one) for one in verdicts["verdict"]], doubts)


def _parts(verdicts: pd.DataFrame) -> Iterator[CausePart]:
    """Take what matters to a gate without a policy."""
    columns = (verdicts[name].tolist() for name in _READ)
    for scenario, metric, statistic, word, effect, gate in zip(*columns, strict=True):
        verdict, action = Verdict(word), Action(gate)
        if verdict is Verdict.IMPROVEMENT:
            action = STRICT.rule_for(scenario, metric).action
        if action is not Action.WATCH:
            yield CausePart(metric, statistic, verdict, None if pd.isna(effect) else effect, action)


def verdict_cell(row: RunRow) -> Cell:
    """Show the verdict of a run; of one that is bad on purpose, that it is a control."""
    if row.is_control:
        return Cell("control", "bad on purpose")
    return Cell(row.verdict or "no verdict")


def every_run(rows: Sized) -> Line:
    """Lead to the list of every run."""
    return ("See ", Link(plural(len(rows), "run"), address("runs")), " of this store.")
