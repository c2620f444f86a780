"""Alerts: what is bad, since when, and who does what about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.sight import kind_of
from hybridwatch.triage import Alert, Change, Deed, Entry, Judged, Status
from hybridwatch.views import numbers
from hybridwatch.views.address import Address, address
from hybridwatch.views.asked import Asked
from hybridwatch.views.document import (
    Block,
    Cell,
    Choice,
    Column,
    Document,
    Facts,
    Filters,
    Folded,
    Inline,
    Line,
    Link,
    Paragraph,
    Section,
    Table,
    When,
)
from hybridwatch.views.history import age
from hybridwatch.views.screens.alerting import CONTROL, alerts_here
from hybridwatch.views.screens.empty import broken_in, empty_store
from hybridwatch.views.screens.pager import Part, part_of
from hybridwatch.views.screens.screen import Source
from hybridwatch.views.sentence import plural

_STANDING: Final = "standing"
_ALL: Final = "all"
_NOBODY: Final = "nobody"
_NONE: Final = "none picked"
_STORY_OPEN: Final = 8
_QUOTED: Final = 160
"""Characters of what somebody wrote that a list shows; the alert's own page shows all."""

DONE: Final[Mapping[Deed, str]] = {
    Deed.ACKNOWLEDGE: "acknowledged",
    Deed.LINK: "linked an issue",
    Deed.ASSIGN: "assigned",
    Deed.MUTE: "muted",
    Deed.UNMUTE: "unmuted",
    Deed.NOTE: "noted",
    Deed.REOPEN: "reopened",
}
"""What somebody did, after the name."""
_CHANGED: Final[Mapping[Change, str]] = {
    Change.OPENED: "opened",
    Change.RESOLVED: "resolved",
    Change.REOPENED: "came back",
}


def show(source: Source, asked: Asked) -> Document:
    """List the alerts that are asked for, or show one with its story."""
    alerts = alerts_here(source)
    by_key = {alert.matter.key: alert for alert in alerts}
    picked = asked.one("Alert", "alert", {"": _NONE, **_named(alerts)}, "")
    filters = _filters(alerts, asked)
    chosen = [alert for alert in alerts if _is_chosen(alert, filters)]
    part = part_of(chosen, asked)
    lead = _lead(alerts, source)
    if source.index.runs().empty:
        return Document("Alerts", empty_store(source))
    if picked.value:
        here = _without_alert(asked.resolved())
        return _one(by_key[picked.value], picked, chosen, here, source)
    count = plural(len(chosen), "alert")
    listed = tuple(_list(part, count, asked.resolved(), source))
    choices = Filters((*filters, picked))
    return Document("Alerts", (*broken_in(source), choices, *listed), lead=lead)


def entry_line(entry: Entry) -> str:
    """Tell one act in a line: who did what, and the words that came with it."""
    act = entry.act
    if act.deed is Deed.ASSIGN:
        return f"{entry.who} {f'assigned {act.text}' if act.text else 'took it from everybody'}"
    until = f" until {act.until:%Y-%m-%d}" if act.until else ""
    return f"{entry.who} {DONE[act.deed]}{until}" + (f": {act.text}" if act.text else "")


def _named(alerts: Iterable[Alert]) -> dict[str, str]:
    """Name alerts for a list of choices."""
    named: dict[str, str] = {}
    for alert in alerts:
        matter = alert.matter
        words = (
            matter.scenario,
            matter.metric,
            matter.statistic,
            "\N{MIDDLE DOT}",
            matter.contender,
        )
        named[matter.key] = " ".join(filter(None, words))
    return named


def _filters(alerts: Sequence[Alert], asked: Asked) -> tuple[Choice, ...]:
    counts = {status.value: sum(a.status is status for a in alerts) for status in Status}
    standing = len(alerts) - counts[Status.RESOLVED.value]
    statuses = {
        _STANDING: f"not resolved ({standing})",
        **{status: f"{status} ({count})" for status, count in counts.items()},
        _ALL: f"all ({len(alerts)})",
    }
    names = sorted({alert.decisions.assignee for alert in alerts} - {""})
    return (
        asked.one("Show", "status", statuses, _STANDING),
        asked.many("Scenario", "scenario", _same({alert.matter.scenario for alert in alerts})),
        asked.many("Assigned to", "assigned", {"": _NOBODY, **_same(names)}),
    )


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in sorted(names)}


def _is_chosen(alert: Alert, filters: Sequence[Choice]) -> bool:
    status, scenario, assigned = filters
    fits = {_STANDING: alert.status is not Status.RESOLVED, _ALL: True}
    return (
        fits.get(status.value, alert.status.value == status.value)
        and (not scenario.chosen or alert.matter.scenario in scenario.chosen)
        and (not assigned.chosen or alert.decisions.assignee in assigned.chosen)
    )


def _without_alert(here: Address) -> Address:
    return Address(here.screen, tuple(pair for pair in here.parameters if pair[0] != "alert"))


def _to(alert: Alert, here: Address) -> Address:
    """The page of one alert, which remembers the list that it was chosen from."""
    kept = tuple(pair for pair in here.parameters if pair[0] not in {"alert", "page"})
    return Address(here.screen, (("alert", alert.matter.key), *kept))


def _lead(alerts: Sequence[Alert], source: Source) -> Line:
    standing = [alert for alert in alerts if alert.status is Status.OPEN]
    if not standing:
        return f"Nothing is open in {plural(source.index.counts['runs'], 'run')}."
    blocking = sum(alert.rank is Action.BLOCK for alert in standing)
    newest = max(alert.opened_by.started_at for alert in standing)
    return (
        f"{len(standing)} open, {blocking} of them would block · newest ",
        When(newest, age(newest, source.now)),
    )


def _list(part: Part[Alert], count: str, here: Address, source: Source) -> Iterator[Block]:
    if not part.shown:
        yield Paragraph("No alert is as asked for.")
        return
    columns = (
        Column("verdict"),
        Column("scenario, metric"),
        Column("change", number=True),
        Column("build"),
        Column("since, run"),
        Column("status"),
        Column("who did what", wide=True),
    )
    yield Table("Alerts", columns, tuple(_row(alert, here, source) for alert in part.shown))
    hint = "Open an alert to see its story; the dashboard asks there what you do about it."
    yield Paragraph(hint, quiet=True)
    yield from part.ways(count, here, ("worse", "further"))


def _row(alert: Alert, here: Address, source: Source) -> tuple[Cell | Inline, ...]:
    matter, opened, last = alert.matter, alert.opened_by, alert.decisions.entries[-1:]
    return (
        alert.bad.verdict,
        Cell(
            Link(matter.scenario, _to(alert, here)),
            f"{matter.metric} {matter.statistic}".strip(),
        ),
        Cell(_change(alert.bad), raw=alert.bad.effect),
        Cell(matter.contender, f"against {matter.baseline}, {matter.testbed}"),
        Cell(_ago(opened, source), _run(opened)),
        Cell(_status(alert), _rank(alert)),
        _did(last[0], source) if last else "nobody yet",
    )


def _status(alert: Alert) -> Line:
    if alert.muted_until is not None:
        return ("muted until ", When(alert.muted_until, f"{alert.muted_until:%Y-%m-%d}"))
    return alert.status.value


def _rank(alert: Alert) -> str:
    return "blocks" if alert.rank is Action.BLOCK else "warns"


def _did(entry: Entry, source: Source) -> Cell:
    said = entry_line(entry)
    short = said if len(said) <= _QUOTED else said[:_QUOTED].rstrip() + "…"
    return Cell(short, When(entry.at, age(entry.at, source.now)))


def _change(judged: Judged) -> str:
    kind = kind_of(judged.matter.metric)
    return numbers.effect(judged.effect, kind) if kind else numbers.ABSENT


def _ago(judged: Judged, source: Source) -> When:
    return When(judged.started_at, age(judged.started_at, source.now))


def _run(judged: Judged) -> Link:
    return Link(f"run\N{NO-BREAK SPACE}{judged.run_id}", address("run", run=judged.run_id))


def _one(
    alert: Alert, picked: Choice, chosen: Sequence[Alert], here: Address, source: Source
) -> Document:
    matter = alert.matter
    blocks = (
        Filters((picked,)),
        Paragraph(_way(alert, chosen, here), quiet=True),
        Paragraph((alert.bad.verdict, "  ", *_sentence(alert, source))),
        Facts(tuple(_facts(alert, source))),
        *_story(alert, source),
    )
    metric = f"{matter.metric} {matter.statistic}".strip()
    lead = f"{matter.contender} against {matter.baseline} on {matter.testbed}"
    return Document(f"{matter.scenario}: {metric}", blocks, lead=lead)


def _way(alert: Alert, chosen: Sequence[Alert], here: Address) -> tuple[Inline, ...]:
    """Lead back to the list, and on through it."""
    line: list[Inline] = [Link("Alerts", here)]
    keys = [each.matter.key for each in chosen]
    if alert.matter.key in keys:
        place = keys.index(alert.matter.key)
        line.append(f" · {place + 1} of {len(chosen)}")
        for text, to in (("previous", place - 1), ("next", place + 1)):
            if 0 <= to < len(chosen):
                line += [" · ", Link(text, _to(chosen[to], here))]
    return tuple(line)


def _sentence(alert: Alert, source: Source) -> tuple[Inline, ...]:
    opened = alert.opened_by
    since = ("since ", _ago(opened, source), ", ", _run(opened), ".")
    if alert.matter.metric == CONTROL:
        told = "The contender lacks a fix on purpose, and nothing told it from the healthy engine:"
        return (f"{told} this scenario is green whatever happens, ", *since)
    return (f"{_change(alert.bad)}, " if alert.bad.effect else "", *since)


def _facts(alert: Alert, source: Source) -> Iterator[tuple[str, Line]]:
    decided = alert.decisions
    yield "Status", _status(alert)
    yield "By the gate's policy it", _rank(alert)
    yield "Assigned to", decided.assignee or _NOBODY
    yield "Issue", Link(decided.issue, decided.issue) if decided.issue else "none"
    yield "Newest verdict", (alert.newest.verdict, " ", _ago(alert.newest, source))
    if alert.newest != alert.opened_by:
        yield "Newest run", _run(alert.newest)


def _story(alert: Alert, source: Source) -> Iterator[Block]:
    """Tell what the verdicts and the people did, the newest first."""
    happened: list[tuple[When, Line]] = [
        (
            _ago(turn.by, source),
            (f"{_CHANGED[turn.change]} by ", _run(turn.by), f": {_told(turn.by)}"),
        )
        for turn in alert.turns
    ]
    happened += [
        (When(entry.at, age(entry.at, source.now)), entry_line(entry))
        for entry in alert.decisions.entries
    ]
    happened.sort(key=lambda one: one[0].moment, reverse=True)
    columns = (Column("when"), Column("what happened"))
    rows = tuple((when, Cell(line)) for when, line in happened)
    table = Table("What happened, the newest first", columns, rows)
    title = f"What happened ({len(rows)})"
    yield Folded(title, (table,)) if len(rows) > _STORY_OPEN else Section(title, (table,))


def _told(judged: Judged) -> str:
    change = _change(judged)
    return judged.verdict.value + ("" if change == numbers.ABSENT else f", {change}")
