"""The month at one look: the worst verdict of each scenario and testbed in each of its nights.

A night begins at noon, UTC. Controls are bad on purpose, and are left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from hybridwatch.analysis.verdict import ORDER, Verdict
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.machine_changes import machine_changes
from hybridwatch.history.runs import RunRow, runs_by_id
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Block, Grade, Inline, Link, NightCell, Nights, Paragraph
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.records.identity import compares_releases

_NIGHTS: Final = 30
_ROWS: Final = 40
_NOON: Final = timedelta(hours=12)
_Place = tuple[str, str]
_Runs = Mapping[date, list[RunRow]]


def night_blocks(source: ScreenSource, is_wanted: Callable[[RunRow], bool]) -> Iterator[Block]:
    """Draw the last nights up to the newest run; nothing without a verdict in them."""
    rows = [row for row in runs_by_id(source.index).values() if not row.is_control and row.verdict]
    wanted = [row for row in rows if is_wanted(row)]
    if not wanted:
        return
    last = max(_night(row.started_at) for row in wanted)
    nights = tuple(last - timedelta(days=back) for back in reversed(range(_NIGHTS)))
    places: defaultdict[_Place, defaultdict[date, list[RunRow]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in reversed(wanted):
        if (night := _night(row.started_at)) >= nights[0]:
            places[row.scenario, row.testbed][night].append(row)
    moved = {(one.testbed, _night(one.at)) for one in machine_changes(source.index)}
    order = sorted(places, key=lambda place: (_loudness(places[place]), place))
    several = len({testbed for _, testbed in places}) > 1
    drawn = tuple(
        (_name(place, with_testbed=several), tuple(_cells(places[place], place, nights, moved)))
        for place in order[:_ROWS]
    )
    caption = f"Night by night up to {nights[-1]}, what is loudest now first"
    yield Nights(caption, nights, drawn)
    yield Paragraph(_legend(drawn, len(order) - _ROWS), quiet=True)


def _night(moment: datetime) -> date:
    return (moment - _NOON).date()


def _worst(rows: Sequence[RunRow]) -> RunRow:
    return min(rows, key=lambda row: ORDER.index(row.verdict or Verdict.NOT_COMPARABLE))


def _loudness(runs: _Runs) -> int:
    verdict = _worst(runs[max(runs)]).verdict
    return ORDER.index(verdict) if verdict else len(ORDER)


def _name(place: _Place, *, with_testbed: bool) -> Inline | tuple[Inline, ...]:
    scenario, testbed = place
    link = Link(scenario, address("scenario", scenario=scenario, testbed=testbed))
    return (link, f" \N{MIDDLE DOT} {testbed}") if with_testbed else link


def _cells(
    runs: _Runs, place: _Place, nights: Sequence[date], moved: set[tuple[str, date]]
) -> Iterator[NightCell]:
    for night in nights:
        is_new = (place[1], night) in moved
        machine = ", the machine changed" if is_new else ""
        found = runs.get(night, ())
        if not found:
            yield NightCell(None, f"{night}: not measured{machine}", is_machine_new=is_new)
            continue
        row = _worst(found)
        of_releases = any(len(one.lines) > 1 and compares_releases(*one.lines) for one in found)
        several = f", the worst of {len(found)} runs" if len(found) > 1 else ""
        verdict = row.verdict.value if row.verdict else ""
        text = f"{night}: {verdict}, {' → '.join(row.builds)}{several}{machine}"
        yield NightCell(row.verdict, text, address("run", run=row.run), is_new, of_releases)


def _legend(
    drawn: Sequence[tuple[object, Sequence[NightCell]]], left_out: int
) -> tuple[Inline, ...]:
    cells = [cell for _, row in drawn for cell in row]
    shown = {cell.verdict for cell in cells}
    line: list[Inline] = []
    for verdict in ORDER:
        if verdict in shown:
            line += [Grade(verdict, verdict.value), "  "]
    words = ["· not measured"] if None in shown else []
    words += ["line above: the machine changed"] if any(c.is_machine_new for c in cells) else []
    words += ["line below: two releases compared"] if any(c.is_of_releases for c in cells) else []
    words += [f"{plural(left_out, 'quieter scenario')} not drawn"] if left_out > 0 else []
    return (*line, "; ".join(words))
