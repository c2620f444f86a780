"""How fast the dashboard is in a real browser, and how much memory it needs.

::

    python -m tests.dashboard.speed FOLDER

FOLDER is a store of any size, such as one by ``tests.unit.database.synthetic``; its index is
brought up to date first, and that is not counted. Times are on the clock, from the click or the
address until the page is drawn whole, figures too. The first page is that of a browser which was
never here; the others are loaded again in one that was. What else runs on the machine counts. Exit
status 1: something takes longer than it may.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
from playwright.sync_api import Browser, Page

from hybridwatch.database.queries import Index, open_index
from hybridwatch.pages.address import address
from tests.dashboard.looking import settle
from tests.dashboard.server import Server, chromium, serving

_TIMES: Final = 5
_PAGE_S: Final = {"overview": 1.2, "scenario": 2.0}
_START_S: Final = 6.0
_CHANGE_S: Final = 1.0
_MEMORY_MIB: Final = 600.0
_TOLD: Final = {0.5: "", 0.0: ", to the last strip"}
"""What is measured of a change: until figures are drawn of which more than this is in sight."""
_SHARES: Final = tuple(_TOLD)
_READ_MS: Final = 3000
"""What a person takes to look at a page before changing it, or opening another."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured."""

    name: str
    unit: str
    values: list[float]
    bound: float

    @property
    def holds(self) -> bool:
        """Whether all are within the bound."""
        return max(self.values) <= self.bound


def measure(results: Path) -> Iterator[Measured]:
    """Use the dashboard as a person does, and time it."""
    index = open_index(results)
    with chromium() as browser:
        start = time.perf_counter()
        with serving(results) as server:
            with _window(browser) as page:
                page.goto(server.address)
                settle(page)
                took = time.perf_counter() - start
            yield Measured("start to first page", "s", [took], _START_S)
            yield from _pages(browser, server, index)
            yield from _changes(browser, server, index)
            for name, field in (("memory now", "VmRSS"), ("memory at most", "VmHWM")):
                yield Measured(name, "MiB", [_memory_mib(server, field)], _MEMORY_MIB)


def _pages(browser: Browser, server: Server, index: Index) -> Iterator[Measured]:
    views = {"overview": [server.address] * _TIMES}
    views["scenario"] = [
        f"{server.address}/{address('scenario', scenario=name).href()}" for name in _largest(index)
    ]
    for name, wanted in views.items():
        with _window(browser) as page:
            page.goto(wanted[-1])
            settle(page)
            times = [_opened(page, view) for view in wanted]
        yield Measured(f"{name} page", "s", times, _PAGE_S[name])


def _opened(page: Page, view: str) -> float:
    page.wait_for_timeout(_READ_MS)
    return _timed(partial(page.goto, view), page)[0]


def _changes(browser: Browser, server: Server, index: Index) -> Iterator[Measured]:
    scenario = _largest(index)[0]
    with _window(browser) as page:
        page.goto(server.address)
        settle(page)
        groups = sorted(index.runs()["group"].unique())[:_TIMES]
        yield from _picked(page, "Group", groups, "overview, a filter")
        for _ in "ab":  # as above: in a browser that was here
            page.goto(f"{server.address}/{address('scenario', scenario=scenario).href()}")
            settle(page)
            page.wait_for_timeout(_READ_MS)
        yield from _picked(page, "Along", ("release", "time") * 2, "scenario, along what")
        newest = ("newest 200", "newest 50") * 2
        yield from _picked(page, "Runs of each build", newest, "scenario, runs")


def _picked(page: Page, label: str, options: Sequence[str], name: str) -> Iterator[Measured]:
    """Choose options one after the other; counted from the click on each."""
    times: list[list[float]] = []
    for option in options:
        page.get_by_label(label, exact=False).last.click()
        wanted = page.get_by_role("option", name=option, exact=True)
        wanted.hover()  # once the list has come to rest, which is not ours to time
        times.append(_timed(partial(_pick, page), page, _SHARES))
    for share, taken in zip(_SHARES, zip(*times, strict=True), strict=True):
        yield Measured(f"{name}{_TOLD[share]}", "s", list(taken), _CHANGE_S)


def _pick(page: Page) -> None:
    before = page.url
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)


def _timed(step: Callable[[], object], page: Page, shares: Sequence[float] = (0.0,)) -> list[float]:
    start = time.perf_counter()
    step()
    return [_settled(page, share) - start for share in shares]


def _settled(page: Page, share: float) -> float:
    settle(page, share=share)
    return time.perf_counter()


def _largest(index: Index) -> list[str]:
    """The scenarios with the most runs."""
    counted = index.runs()["scenario"].value_counts()
    return [str(name) for name in counted.index[:_TIMES]]


@contextmanager
def _window(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    try:
        yield context.new_page()
    finally:
        context.close()


def _memory_mib(server: Server, field: str) -> float:
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
def command(folder: Path) -> None:
    """Measure the dashboard over FOLDER."""
    held = True
    for found in measure(folder):
        held &= found.holds
        middle, most = statistics.median(found.values), max(found.values)
        click.echo(
            f"{found.name:24}{middle:9.2f} {found.unit}, at most {most:9.2f} of {found.bound:g}"
            f"{'' if found.holds else '  OVER'}"
        )
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    command()
