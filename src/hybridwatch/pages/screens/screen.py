"""What screens share: their type and source, notices, and alerts in a line each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.analysis.alert_decisions import DecisionEntry, TriageAction
from hybridwatch.analysis.alert_timeline import RunVerdict
from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.analysis.detection import Detection
from hybridwatch.analysis.freshness import Gap, LastMeasured
from hybridwatch.analysis.wording.numbers import age, plural
from hybridwatch.database.queries import Index
from hybridwatch.history.alerts import find_gaps, find_groups
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import ControlRun
from hybridwatch.history.entry import Entry, load_entry
from hybridwatch.history.runs import list_contenders, runs_by_id
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
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
from hybridwatch.reports.alert_text import CLOSED
from hybridwatch.reports.sentence import headline

_NAMED: Final = 8
"""Lines of a notice; the grid marks every scenario."""


@dataclass(frozen=True, slots=True)
class ScreenSource:
    """Everything that a screen may look at.

    Attributes:
        now: Ages count back from here; UTC.
        read: Reads and judges one record; the live page keeps what it read.
    """

    results: Path
    index: Index
    now: datetime
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


def trouble_notice(title: str, error: Exception) -> Notice:
    """Name an error, a line for each of its own."""
    return Notice(title, tuple(str(error).splitlines()))


def broken_notice(broken: Sequence[Broken]) -> Notice:
    """Name what could not be read, loudly."""
    title = f"{plural(len(broken), 'record')} could not be read"
    return Notice(title, tuple(f"{b.path.name}: {b.reason}" for b in broken))


def broken_in(source: ScreenSource) -> tuple[Notice, ...]:
    """Name what could not be read of a store; nothing when all of it could."""
    if not source.index.counts["broken"]:
        return ()
    rows = source.index.broken()[["record", "reason"]].itertuples(index=False)
    return (broken_notice([Broken(source.results / record, why) for record, why in rows]),)


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
    never: dict[str, list[str]] = {}
    for gap in found:
        if gap.last is None:
            never.setdefault(f"{_on(gap)}: {gap.reason}", []).append(gap.scenario or "everything")
    lines: list[Line] = []
    for text, scenarios in never.items():
        more = f" and {len(scenarios) - _NAMED} more" if len(scenarios) > _NAMED else ""
        lines.append(f"{', '.join(scenarios[:_NAMED])}{more}{text}")
    late = [_late_line(gap, gap.last) for gap in found if gap.last is not None]
    lines += late[:_NAMED]
    lines += [f"and {len(late) - _NAMED} more"] if len(late) > _NAMED else []
    names = dict.fromkeys(gap.scenario for gap in found if gap.scenario)
    if names:
        lines.append("Measure them: hybridwatch run " + " ".join(names))
    title = f"{plural(len(found), 'expected measurement')} missing"
    yield Notice(title, tuple(lines))


def _on(gap: Gap) -> str:
    return f" on {gap.testbed}" if gap.testbed else ""


def _late_line(gap: Gap, last: LastMeasured) -> tuple[Inline, ...]:
    view = address("scenario", scenario=gap.scenario, testbed=last.testbed)
    return (Link(gap.scenario, view), f"{_on(gap)}: {gap.reason}")


_LONGEST: Final = 160
"""Characters of one line of a list; pages of their own show all."""
UNASSIGNED: Final = "no one"
DONE: Final[Mapping[TriageAction, str]] = {
    TriageAction.ACKNOWLEDGE: "acknowledged",
    TriageAction.LINK: "linked an issue",
    TriageAction.ASSIGN: "assigned",
    TriageAction.MUTE: "muted",
    TriageAction.UNMUTE: "unmuted",
    TriageAction.NOTE: "noted",
    TriageAction.REOPEN: "reopened",
    TriageAction.ACCEPT: "accepted as expected",
    TriageAction.INVALID: "called it invalid",
    TriageAction.DUPLICATE: "called it a duplicate of",
}
"""What a person did, after the name."""


def alerts_here(source: ScreenSource) -> tuple[AlertGroup, ...]:
    """Derive every alert of a store; a ``TriageError`` if decisions cannot be read."""
    return find_groups(source.results, source.index, source.checkout(), source.now)


def engine_message(run_id: str, source: ScreenSource) -> str:
    """Say why an engine failed as the headline of its run does; empty where that is not known."""
    entry = source.entry(run_id)
    if not isinstance(entry, Entry) or entry.report is None:
        return ""
    return shortened(headline(entry.report))


def shortened(text: str) -> str:
    """Cut a text to one line of a list."""
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + "…"


def since(run_verdict: RunVerdict, source: ScreenSource) -> Cell:
    """Say when a run was, which it was, and of which release the engine was that it measured."""
    at = run_verdict.started_at
    return Cell((f"{at:%Y-%m-%d}, ", source.ago(at)), run_line(run_verdict, source))


def run_line(run_verdict: RunVerdict, source: ScreenSource) -> tuple[Inline, ...]:
    """Name a run and the release of its contender."""
    link = run_link(run_verdict.run_id)
    _, release = list_contenders(source.index).get(run_verdict.run_id, ("", ""))
    return (link, f" of {release}") if release else (link,)


def entry_line(entry: DecisionEntry) -> str:
    """Tell one decision in a line: who did what, and the words that came with it."""
    decision = entry.decision
    if decision.action is TriageAction.ASSIGN:
        done = f"assigned {decision.text}" if decision.text else "took it from everybody"
        return f"{entry.who} {done}"
    until = f" until {decision.until:%Y-%m-%d}" if decision.until else ""
    text = f": {decision.text}" if decision.text else ""
    return f"{entry.who} {DONE[decision.action]}{until}{text}"


def status_line(alert: Alert | AlertGroup) -> Line:
    """Say how an alert stands, and how it came to be closed."""
    if alert.muted_until is not None:
        return ("muted until ", When(alert.muted_until, f"{alert.muted_until:%Y-%m-%d}"))
    answer = alert.decisions.answer
    if alert.status is Status.CLOSED and answer is not None:
        return f"closed: {CLOSED[answer.decision.action]}"
    return "between two releases" if alert.status is Status.RELEASE else alert.status.value
