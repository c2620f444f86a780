"""What a site tells those who do not open it: an Atom feed (RFC 4287) and a badge.

An entry is a change of one alert by one run: opened, opened again, over. Its id is made of these
three, so that no reader is told anything twice, wherever the site lies.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from hybridwatch.analysis.alert_timeline import Timeline, Transition
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.alerts import find_timelines
from hybridwatch.pages.address import address
from hybridwatch.pages.html import ENVIRONMENT
from hybridwatch.pages.screens import ScreenSource
from hybridwatch.pages.screens.alerting import alerts_here
from hybridwatch.pages.screens.screen import gaps_here
from hybridwatch.pages.site_map import SiteMap
from hybridwatch.reports.alert_text import alert_text, is_control

_ENTRIES: Final = 100
_NAME: Final = "hybridwatch"
_LETTER: Final = 6.6
"""Pixels, of eleven-pixel type; each text is drawn to its own length."""
_NO_RUN: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BAD, _WARNING, _GOOD = "#b3261e", "#8a5300", "#0b6b5b"
"""4.5:1 and more below white."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A change of an alert; ``path`` is below the site's folder."""

    id: str
    at: datetime
    kind: str
    title: str
    summary: str
    path: str


def render_feed(source: ScreenSource, site: SiteMap, base_url: str) -> str:
    """Write the newest changes of alerts as an Atom feed, the newest first.

    ``base_url`` is where the site is found; links are relative without.
    """
    entries = sorted(_entries(source, site), key=lambda entry: (entry.at, entry.id), reverse=True)
    return ENVIRONMENT.get_template("feed.xml").render(
        {
            "id": f"urn:uuid:{uuid5(NAMESPACE_URL, base_url or _NAME)}",
            "updated": entries[0].at if entries else _NO_RUN,
            "base_url": base_url,
            "entries": entries[:_ENTRIES],
        }
    )


def _entries(source: ScreenSource, site: SiteMap) -> Iterator[FeedEntry]:
    for timeline in find_timelines(source.index, source.checkout()).everything:
        path = site.find(address("alerts", alert=timeline.subject.key), "index.html")
        if path is not None:
            yield from (_entry(timeline, change, path) for change in timeline.transitions)


def _entry(timeline: Timeline, transition: Transition, path: str) -> FeedEntry:
    subject, kind, run = timeline.subject, transition.change.value, transition.by.run_id
    cause = transition.by.cause
    named = cause is not None and not is_control(timeline) and not transition.change.is_end
    text = cause_sentence(cause) if named and cause else alert_text(timeline).sentence()
    facts = json.dumps([subject.key, run, kind])
    return FeedEntry(
        f"urn:uuid:{uuid5(NAMESPACE_URL, facts)}",
        transition.by.started_at,
        kind,
        f"{kind.capitalize()}: {subject.scenario}: {text}",
        f"{subject.baseline} → {subject.contender} on {subject.testbed}, run {run}",
        path,
    )


def render_badge(source: ScreenSource) -> str:
    """Say in a few words how a store stands, as an SVG."""
    found = [group for group in alerts_here(source) if group.status is Status.OPEN]
    missing = len(gaps_here(source))
    words = [f"{plural(len(found), 'open alert')}"] if found else []
    words += [f"{missing} not measured"] if missing else []
    is_blocking = any(group.rank is Action.BLOCK for group in found)
    text = ", ".join(words) or "no open alert"
    return ENVIRONMENT.get_template("badge.svg").render(
        {
            "name": _NAME,
            "text": text,
            "colour": _BAD if is_blocking else _WARNING if words else _GOOD,
            "left": round(len(_NAME) * _LETTER) + 12,
            "right": round(len(text) * _LETTER) + 12,
        }
    )
