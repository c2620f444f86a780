"""Alerts: what is bad, since when, and who does what about it; one of them in ``alert``."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action
from hybridwatch.pages.address import Address, address
from hybridwatch.pages.alert_words import NOBODY, entry_line, status_line
from hybridwatch.pages.document import (
    Block,
    Cell,
    Choice,
    Column,
    Document,
    Filters,
    Inline,
    Line,
    Link,
    Paragraph,
    Table,
)
from hybridwatch.pages.query import ViewQuery
from hybridwatch.pages.screens.alert import alert_page
from hybridwatch.pages.screens.alerting import (
    LONGEST_LINE,
    alerts_here,
    engine_message,
    run_line,
    since,
)
from hybridwatch.pages.screens.empty import broken_in, empty_store
from hybridwatch.pages.screens.pager import Part, part_of
from hybridwatch.pages.screens.screen import Source
from hybridwatch.pages.screens.unmeasured import gaps_here, gaps_notice
from hybridwatch.report.alert_text import alert_text, change_of, rank_of
from hybridwatch.report.sentence import plural
from hybridwatch.triage import Alert, Entry, Status

_STANDING: Final = "standing"
_SETTLED: Final = frozenset({Status.CLOSED, Status.RESOLVED})
_ALL: Final = "all"
_NONE: Final = "none picked"


def show(source: Source, query: ViewQuery) -> Document:
    """List the alerts that are asked for, or show one with its story."""
    alerts = alerts_here(source)
    by_key = {alert.matter.key: alert for alert in alerts}
    every = Link(plural(len(alerts), "alert"), address("alerts", status=_ALL))
    instead = ("See ", every, " of this store.")
    picked = query.subject("Alert", "alert", {"": _NONE, **_named(alerts)}, (instead,), "")
    filters = _filters(alerts, query)
    chosen = [alert for alert in alerts if _is_chosen(alert, filters)]
    part = part_of(chosen, query)
    lead = _lead(alerts, source)
    if source.index.runs().empty:
        return Document("Alerts", empty_store(source))
    if picked.value:
        here = _without_alert(query.resolved())
        alert = by_key[picked.value]
        return alert_page(alert, picked, _way(alert, chosen, here), source)
    count = plural(len(chosen), "alert")
    listed = tuple(_list(part, count, query.resolved(), source))
    choices = Filters((*filters, picked))
    loud = (*gaps_notice(gaps_here(source)), *broken_in(source))
    return Document("Alerts", (*loud, choices, *listed), lead=lead)


def listed(source: Source, here: Address) -> tuple[Alert, ...]:
    """Give the alerts that the list at an address shows; none where it shows one of them."""
    query = ViewQuery(here)
    alerts = alerts_here(source)
    filters = _filters(alerts, query)
    part = part_of([alert for alert in alerts if _is_chosen(alert, filters)], query)
    return () if any(here.values("alert")) else tuple(part.shown)


def name_of(alert: Alert) -> str:
    """Name an alert where there is one line for it."""
    matter, text = alert.matter, alert_text(alert)
    return f"{matter.scenario}: {text.what.lower()} \N{MIDDLE DOT} {matter.contender}"


def _named(alerts: Iterable[Alert]) -> dict[str, str]:
    """Name alerts for a list of choices."""
    return {alert.matter.key: name_of(alert) for alert in alerts}


def _filters(alerts: Sequence[Alert], query: ViewQuery) -> tuple[Choice, ...]:
    counts = {status.value: sum(a.status is status for a in alerts) for status in Status}
    standing = sum(alert.status not in _SETTLED for alert in alerts)
    statuses = {
        _STANDING: f"neither closed nor resolved ({standing})",
        **{status: f"{status} ({count})" for status, count in counts.items()},
        _ALL: f"all ({len(alerts)})",
    }
    names = sorted({alert.decisions.assignee for alert in alerts} - {""})
    return (
        query.one("Show", "status", statuses, _STANDING),
        query.many("Scenario", "scenario", _same({alert.matter.scenario for alert in alerts})),
        query.many("Assigned to", "assigned", {"": NOBODY, **_same(names)}),
    )


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in sorted(names)}


def _is_chosen(alert: Alert, filters: Sequence[Choice]) -> bool:
    status, scenario, assigned = filters
    fits = {_STANDING: alert.status not in _SETTLED, _ALL: True}
    return (
        fits.get(status.value, alert.status.value == status.value)
        and (not scenario.chosen or alert.matter.scenario in scenario.chosen)
        and (not assigned.chosen or alert.decisions.assignee in assigned.chosen)
    )


def _without_alert(here: Address) -> Address:
    return Address(here.screen, tuple(pair for pair in here.parameters if pair[0] != "alert"))


def address_of(alert: Alert, here: Address) -> Address:
    """Lead to the page of one alert, which remembers the list that it was chosen from."""
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
        source.ago(newest),
    )


def _list(part: Part[Alert], count: str, here: Address, source: Source) -> Iterator[Block]:
    if not part.shown:
        yield Paragraph("No alert is as asked for.")
        return
    columns = (
        Column("verdict"),
        Column("scenario, what happened", wide=True),
        Column("change", number=True, title="Of the metric that is named"),
        Column("build"),
        Column("since, run"),
        Column("status"),
        Column("who did what", wide=True),
    )
    yield Table("Alerts", columns, tuple(_row(alert, here, source) for alert in part.shown))
    hint = (
        "One alert stands for one cause; its page has the metrics that show it, what changed and "
    )
    yield Paragraph(f"{hint}its story. The dashboard asks what you do about it.", quiet=True)
    yield from part.ways(count, here, ("worse", "further"))


def _row(alert: Alert, here: Address, source: Source) -> tuple[Cell | Inline, ...]:
    matter, last = alert.matter, alert.decisions.all[-1:]
    return (
        alert.cause.lead.verdict,
        Cell(Link(matter.scenario, address_of(alert, here)), _happened(alert, source)),
        Cell(change_of(alert.cause.lead), _shown_by(alert, source), raw=alert.cause.lead.effect),
        Cell(matter.contender, f"against {matter.baseline}, {matter.testbed}"),
        since(alert.opened_by, source),
        Cell(status_line(alert), rank_of(alert)),
        _did(last[0], source) if last else "nobody yet",
    )


def _happened(alert: Alert, source: Source) -> str:
    """Say what happened; of an engine that failed as its run's headline does, with the reason."""
    if alert.matter.area is Area.ENGINE:
        return engine_message(alert.bad.run_id, source) or alert_text(alert).sentence()
    return _short(alert_text(alert).sentence())


def _shown_by(alert: Alert, source: Source) -> Line:
    """Name the run that the change is of, where it is not the one since which it is bad."""
    shown = alert.story.shown_by
    return "" if shown == alert.opened_by else run_line(shown, source)


def _did(entry: Entry, source: Source) -> Cell:
    return Cell(_short(entry_line(entry)), source.ago(entry.at))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE].rstrip() + "…"


def _way(alert: Alert, chosen: Sequence[Alert], here: Address) -> tuple[Inline, ...]:
    """Lead back to the list, and on through it."""
    line: list[Inline] = [Link("Alerts", here)]
    keys = [each.matter.key for each in chosen]
    if alert.matter.key in keys:
        place = keys.index(alert.matter.key)
        line.append(f" · {place + 1} of {len(chosen)}")
        for text, to in (("previous", place - 1), ("next", place + 1)):
            if 0 <= to < len(chosen):
                line += [" · ", Link(text, address_of(chosen[to], here))]
    return tuple(line)
