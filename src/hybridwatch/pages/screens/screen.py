"""The type of a screen, its source of data, and notices that screens share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.analysis.detection import Detection
from hybridwatch.analysis.freshness import Gap
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.analysis.wording.numbers import age
from hybridwatch.database.queries import Index
from hybridwatch.history.alerts import find_gaps
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import ControlRun
from hybridwatch.history.entry import Entry, load_entry
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Command,
    Document,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    When,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.records.store import Broken

_NAMED: Final = 8
"""Lines of a notice; the grid marks every scenario."""


@dataclass(frozen=True, slots=True)
class ScreenSource:
    """Everything that a screen may look at.

    Attributes:
        now: Ages count back from here; UTC.
        triage: The database of what people decided, as a URL; empty for the file next to the
            records.
        read: Reads and judges one record; the live page keeps what it read.
        checkout: Reads what the checkout around the records says; nothing, where there is none.
    """

    results: Path
    index: Index
    now: datetime
    triage: str = ""
    read: Callable[[Path], Entry | Broken] = load_entry
    checkout: Callable[[], Checkout] = Checkout

    def entry(self, run_id: str) -> Entry | Broken | None:
        """Read a run; ``None`` where there is none of this id."""
        row = runs_by_id(self.index).get(run_id)
        return self.read(self.results / row.record) if row else None

    def ago(self, moment: datetime) -> When:
        """Give a moment with its age."""
        return When(moment, age(moment, self.now))


Show: TypeAlias = Callable[[ScreenSource, ViewQuery], Document]
"""A screen: what it says of a store, for one address. Leave ``address`` and ``complaints`` of the
document alone: ``open_view`` fills them in."""


def broken_notice(broken: Sequence[Broken]) -> Notice:
    """Name what could not be read, loudly."""
    title = f"{plural(len(broken), 'record')} could not be read"
    return Notice(title, tuple(f"{b.path.name}: {b.reason}" for b in broken))


def broken_in(source: ScreenSource) -> tuple[Notice, ...]:
    """Name what could not be read of a store; nothing when all of it could."""
    if not source.index.counts["broken"]:
        return ()
    frame = source.index.broken()
    found = [
        Broken(source.results / record, reason)
        for record, reason in zip(frame["record"], frame["reason"], strict=True)
    ]
    return (broken_notice(found),)


def missed_controls(newest: Iterable[ControlRun], words: str) -> Iterator[Notice]:
    """Name the known-bad controls that were not caught; ``words`` has a place for what is lost."""
    missed = [control for control in newest if control.detection is Detection.MISSED]
    if missed:
        lines = tuple(
            (Link(one.scenario, address("run", run=one.run)), words.format(", ".join(one.lost)))
            for one in missed
        )
        yield Notice(f"{plural(len(missed), 'known-bad control')} not caught", lines)


def run_link(run_id: str) -> Link:
    """Lead to a run by its id."""
    return Link(f"run\N{NO-BREAK SPACE}{run_id}", address("run", run=run_id))


def empty_store(source: ScreenSource) -> tuple[Block, ...]:
    """Say what to do when there is nothing to show."""
    broken = broken_in(source)
    state = "No run can be read." if broken else "No runs yet."
    hint = f"{state} Measure the smoke scenarios first; it takes a few minutes:"
    return (*broken, Paragraph(hint), Command("make run"))


def checkout_notice(checkout: Checkout) -> tuple[Notice, ...]:
    """Name what could not be read of the checkout; nothing when all of it could."""
    title = "The checkout could not be read in full"
    return (Notice(title, checkout.problems, quiet=True),) if checkout.problems else ()


def gaps_here(source: ScreenSource) -> tuple[Gap, ...]:
    """Find what the policy expects of this store and was not measured in time."""
    return find_gaps(source.results, source.index, source.checkout(), source.now)


def find_gap(gaps: Iterable[Gap], scenario: str, testbed: str) -> Gap | None:
    """Find whether a scenario was not measured in time on a testbed."""
    places = {(scenario, testbed), (scenario, "")}
    return next((gap for gap in gaps if (gap.scenario, gap.testbed) in places), None)


def gaps_notice(found: Sequence[Gap]) -> Iterator[Notice]:
    """Name what was not measured in time, with the command that does; nothing without any."""
    if not found:
        return
    lines: list[Line] = [_line(gap) for gap in found[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    names = dict.fromkeys(gap.scenario for gap in found if gap.scenario)
    if names:
        lines.append("Measure them: hybridwatch run " + " ".join(list(names)[:_NAMED]))
    title = f"{plural(len(found), 'expected measurement')} missing"
    yield Notice(title, tuple(lines))


def _line(gap: Gap) -> tuple[Inline, ...]:
    place = f" on {gap.testbed}" if gap.testbed else ""
    if gap.last is None:
        return (f"{gap.scenario or 'everything'}{place}: {gap.reason}",)
    view = address("scenario", scenario=gap.scenario, testbed=gap.last.testbed)
    return (Link(gap.scenario, view), f"{place}: {gap.reason}")
