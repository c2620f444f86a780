"""What the host does in the steps of two sides: phases, and reads by call site."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pandas as pd

from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import worst_first
from hybridwatch.analysis.wording.numbers import ABSENT, duration, plural
from hybridwatch.database.moment import HISTORY
from hybridwatch.database.queries import Index
from hybridwatch.history.entry import BUILDS, NO_READS, READS, WAITS, SideWork, load_host_work
from hybridwatch.history.judge import JudgedReport
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Column,
    Columns,
    Command,
    Document,
    Filters,
    Inline,
    Link,
    Notice,
    Paragraph,
    Section,
    Table,
    by_column,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.pair import (
    PairView,
    choices_of,
    choose,
    judged,
    render_lead,
    repeat_section,
)
from hybridwatch.pages.screens.run import comparisons_table
from hybridwatch.pages.screens.screen import ScreenSource, broken_in, empty_store
from hybridwatch.records.store import Broken
from hybridwatch.reports.figures.curve import figure_phases, figure_steps

_SYNC: Final = "CPU sync"
_SIDES: Final = ("baseline", "contender")


def show(source: ScreenSource, query: ViewQuery) -> Document:
    """Show the two sides of the address, else those of the newest run that has two."""
    rows, watched = runs_by_id(source.index), _watched(source.index)
    pair = choose({run: row for run, row in rows.items() if run in watched}, query)
    if pair is None:
        text = "No run counted host reads. A scenario counts them in its host-sync trials:"
        nothing = (Paragraph(text), Command("hybridwatch run smoke/padded-graph-rows"))
        return Document(_SYNC, nothing if rows else empty_store(source))
    found = judged(source, pair)
    if isinstance(found, JudgedReport):
        works = [load_host_work(side.one_side) for side in (found.baseline, found.contender)]
        counted = {READS, BUILDS} | WAITS
        of_host = [c for c in worst_first(found.report.comparisons) if c.metric.id in counted]
        table = comparisons_table(of_host)
        blocks = (choices_of(pair, found), table, *_work_blocks(works))
        more = Paragraph((Link("Compare every metric of these two", pair.address),))
        end: tuple[Block, ...] = (more, repeat_section(pair, found))
    else:
        blocks = (Filters(found.choices), found.notice, *_alone_blocks(source, pair))
        end = ()
    return Document(_SYNC, (*broken_in(source), *blocks, *end), lead=render_lead(pair))


@lru_cache(maxsize=1)  # what an index says never changes
def _watched(index: Index) -> frozenset[str]:
    """Give the runs in which host reads were counted."""
    cells = index.cells()
    cells = cells[cells["metric"] == READS]
    found = [
        index.series(*cell).levels["run"]
        for cell in cells[list(HISTORY)].drop_duplicates().itertuples(index=False)
    ]
    return frozenset(pd.concat(found)) if found else frozenset()


def _alone_blocks(source: ScreenSource, pair: PairView) -> Iterator[Block]:
    """Show a side alone that has nothing to be compared with."""
    if pair.baseline.named != pair.contender.named:
        return
    entry = source.read(source.results / pair.contender.row.record)
    if not isinstance(entry, Broken):
        yield from _work_blocks([load_host_work(OneSide(entry.run, pair.contender.index))])


def _work_blocks(sides: list[SideWork]) -> Iterator[Block]:
    unkept = [name for name, side in zip(_SIDES, sides, strict=False) if not side.phases]
    if unkept:  # a record can be older than what is shown of it
        whose = "" if len(unkept) == len(sides) else f" of the {unkept[0]}"
        text = f"This record{whose} was measured before call sites and phases were kept"
        hint = "Measure it again to see which code reads, and how long each phase of a step takes."
        yield Notice(text, (hint,), quiet=True)
    for title, blocks in (
        ("Phases of a step", tuple(_phases(sides))),
        ("Host reads by call site", tuple(_sites(sides))),
    ):
        if blocks:
            yield Section(title, blocks)
    charts = tuple((chart,) for chart in _steps(sides))
    if charts:
        yield Section("Step by step", (Columns(charts),))


def _phases(sides: list[SideWork]) -> Iterator[Block]:
    named = zip(_SIDES, sides, strict=False)
    kept = {f"{name}: {side.build}": side.phases for name, side in named if side.phases}
    if not kept:
        return
    rows = [(side, phase, s) for side, parts in kept.items() for phase, s in parts.items()]
    text = "; ".join(
        f"{side} " + ", ".join(f"{phase} {duration(s)}" for phase, s in parts.items())
        for side, parts in kept.items()
    )
    yield Chart(
        "Phases of a step",
        figure_phases(kept),
        f"Host time of a step, each phase's own, medians over steps: {text}.",
        by_column(("side", "phase", "seconds"), rows),
    )


def _sites(sides: list[SideWork]) -> Iterator[Block]:
    if not any(side.sites for side in sides):
        return
    if any(side.elsewhere > 0 for side in sides):
        text = " and ".join(f"{side.elsewhere:.2f}" for side in sides)
        hint = f"Places beyond the busiest of each trial read {text} times a step; not listed."
        yield Paragraph(hint, quiet=True)
    names = _SIDES[: len(sides)]
    change = [Column("change", number=True, title="reads per step")] if len(sides) > 1 else []
    columns: tuple[Column | str, ...] = (
        *change,
        "place",
        *(Column(name, number=True, title="reads per step") for name in names),
        *(Column(f"{name} time", number=True, title="of the reads, per step") for name in names),
    )
    places = {place for side in sides for place in side.sites}
    most = {p: max(side.sites.get(p, NO_READS).reads for side in sides) for p in places}
    ordered = sorted(places, key=lambda place: (-_moved(sides, place), -most[place], place))
    rows = tuple(tuple(_site_row(sides, place)) for place in ordered)
    caption = "Reads per step, and how long they take"
    yield Table(caption, columns, rows, visible=True)


def _site_row(sides: list[SideWork], place: str) -> Iterator[Cell | Inline]:
    found = [side.sites.get(place, NO_READS) for side in sides]
    kept = [bool(side.sites) for side in sides]
    if len(sides) > 1:
        change = found[1].reads - found[0].reads
        shown = f"{change:+.2f}" if round(change, 2) else "0"
        yield Cell(shown, raw=change) if all(kept) else ABSENT
    file, _, rest = place.partition(":")
    function, _, line = rest.rpartition(":")
    kind = next((site.kind for site in found if site.kind), "")
    under = (kind, f"{file}:{line}" if function else "")
    yield Cell(function or place, ", ".join(filter(None, under)), raw=place)
    for site, is_kept in zip(found, kept, strict=True):
        yield Cell(f"{site.reads:.2f}", raw=site.reads) if is_kept else ABSENT
    for site, is_kept in zip(found, kept, strict=True):
        shown = duration(site.seconds) if site.reads else ABSENT
        yield Cell(shown, raw=site.seconds) if is_kept else ABSENT


def _moved(sides: list[SideWork], place: str) -> float:
    reads = [side.sites.get(place, NO_READS).reads for side in sides]
    return round(abs(reads[-1] - reads[0]), 2)


def _steps(sides: list[SideWork]) -> Iterator[Chart]:
    for title, metric, seconds in (
        ("Host reads, step by step", READS, False),
        ("Building metadata, step by step", BUILDS, True),
    ):
        values = [side.builds if seconds else side.reads for side in sides]
        lines = {
            f"{name}: {side.build}": numbers
            for name, side, numbers in zip(_SIDES, sides, values, strict=False)
            if numbers
        }
        if not lines:
            continue
        rows = [(name, at, v) for name, values in lines.items() for at, v in enumerate(values, 1)]
        counted = " and ".join(str(len(values)) for values in lines.values())
        yield Chart(
            title,
            figure_steps(title, lines, seconds=seconds),
            f"Of the first of {plural(sides[0].trials, 'trial')} a side: {counted} steps.",
            by_column(("side", "step", metric), rows),
        )
