"""Which views a static site has, where each lies in its folder, and where a link leads there.

A path is made of what it shows and of nothing else, so that it lasts: a name that could not be a
path, or not on every machine, has its digest behind it.
"""

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Final

from hybridwatch.history.runs import RunRow, runs_by_id
from hybridwatch.pages.address import EVERY, HOME, Address, address, builds_address
from hybridwatch.pages.query import PAGE_ROWS
from hybridwatch.pages.screens import SCREENS, ScreenSource
from hybridwatch.pages.screens.alerts import SETTLED
from hybridwatch.pages.screens.screen import alerts_here

_LIVE: Final = frozenset({"scenario", "compare", "sync", "fleet"})
"""Screens that show what their reader picks, or how things stand this minute."""
_PICKED: Final[Mapping[str, frozenset[str]]] = {
    "scenario": frozenset({"metric", "build", "along", "runs", "version"}),
    "run": frozenset({"metric"}),
}
"""What a link may choose on a page that there is once: it shows what it shows without."""
_SIDES: Final = ("baseline", "contender")
_EVERY_ALERT: Final = address("alerts", status="all")
_ANY_RUN: Final = address("run", run="")
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}(/[a-z0-9][a-z0-9_.-]{0,79})?")
_KEPT: Final = 60
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class SiteMap:
    """The pages of a site, and what every page leads to, by title.

    Attributes:
        pages: The view of each page, by its path below the site's folder; the home page first.
        paths: The page that shows a view.
    """

    pages: Mapping[str, Address]
    navigation: Mapping[str, str]
    paths: Mapping[Address, str]

    def find(self, to: Address, page: str) -> str | None:
        """Lead from a page to a view; ``None`` where the site lacks it, or is there already."""
        folder = posixpath.dirname(page) or "."
        if to == _ANY_RUN:
            return posixpath.relpath("run", folder) + "/"
        path = self.paths.get(_without_picks(to))
        return None if path in {None, page} else posixpath.relpath(str(path), folder)

    def has_run(self, run: str) -> bool:
        """Whether a run has a page."""
        return address("run", run=run) in self.paths


def plan_site(source: ScreenSource, nights: int) -> SiteMap:
    """Say which pages a site has; ``nights`` count back from the newest run, not from now."""
    screens = dict(_screens())
    found = [*screens.values(), *_subjects(source, nights), *_lists(source, nights)]
    pages: dict[str, Address] = {}
    for to, path in found:
        pages.setdefault(path, to)
    navigation = {title: path for title, (_, path) in screens.items()}
    return SiteMap(pages, navigation, dict(reversed(found)))


def _screens() -> Iterator[tuple[str, tuple[Address, str]]]:
    """The pages that every page leads to, by their titles."""
    for screen in SCREENS.values():
        if screen.listed and screen.name not in _LIVE:
            path = "index" if screen.name == HOME else screen.name
            yield screen.title, (Address(screen.name, ()), f"{path}.html")
        if screen.name == "compare":
            yield screen.title, (address("compare", scenario=EVERY), "compare.html")
        if screen.name == "alerts":
            yield "All alerts", (_EVERY_ALERT, "alerts/all.html")


def _subjects(source: ScreenSource, nights: int) -> Iterator[tuple[Address, str]]:
    """The pages of one scenario, alert, run, or the newest two builds of two lines each."""
    cells = source.index.cells().sort_values("newest", ascending=False)
    for scenario, testbed in zip(cells["scenario"], cells["testbed"], strict=True):
        path = f"scenario/{_slug(scenario)}/{_slug(testbed)}.html"
        yield address("scenario", scenario=scenario, testbed=testbed), path
        yield address("scenario", scenario=scenario), path
    for group in alerts_here(source):
        for alert in group.members:
            key = alert.subject.key
            yield address("alerts", alert=key), f"alert/{key}.html"
    rows = _recent(source, nights)
    pairs = {
        row.lines: row.builds for row in rows[::-1] if len(row.builds) > 1 and not row.is_control
    }
    for old, new in pairs.values():
        yield builds_address(old, new), f"compare/{_slug(old)}/{_slug(new)}.html"
    for row in rows:
        yield address("run", run=row.run), f"run/{_slug(row.run)}.html"


def _lists(source: ScreenSource, nights: int) -> Iterator[tuple[Address, str]]:
    """The pages of lists; the first of some are pages that every page leads to."""
    alerts, rows = alerts_here(source), _recent(source, nights)
    standing = sum(alert.status not in SETTLED for alert in alerts)
    yield from _parts(address("alerts"), "alerts", standing)
    yield from _parts(_EVERY_ALERT, "alerts/all", len(alerts))
    yield from _parts(address("runs"), "runs", len(rows))
    for scenario, count in Counter(row.scenario for row in rows).items():
        yield from _parts(address("runs", scenario=scenario), f"runs/{_slug(scenario)}", count)


def _parts(first: Address, path: str, rows: int) -> Iterator[tuple[Address, str]]:
    yield first, f"{path}.html"
    for page in range(2, ceil(rows / PAGE_ROWS) + 1):
        to = Address(first.screen, (*first.parameters, ("page", str(page))))
        yield to, f"{path}-{page}.html"


def _recent(source: ScreenSource, nights: int) -> list[RunRow]:
    """List the runs of the last nights, the newest first."""
    rows = runs_by_id(source.index).values()
    since = max((row.started_at for row in rows), default=source.now) - timedelta(days=nights)
    return [row for row in rows if row.started_at > since]


def _without_picks(to: Address) -> Address:
    """Give the view of a site that shows what a link names."""
    if to.screen == "alerts" and any(to.values("alert")):
        return address("alerts", alert=to.values("alert")[-1])  # it names the list it came from
    sides = {run.partition("#")[0] for name in _SIDES for run in to.values(name)}
    if to.screen == "compare" and len(sides) == 1:
        return address("run", run=sides.pop())
    return to.without(*_PICKED.get(to.screen, ()))


def _slug(name: str) -> str:
    """Make a path of a name; equal for equal names only."""
    if _PLAIN.fullmatch(name):
        return name
    words = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_KEPT].strip("-")
    return f"{words}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"
