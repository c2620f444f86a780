"""The screens: each a function from a store and an address to a document.

The live page and ``hybridwatch page`` open them here, so both show the same.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hybridwatch.errors import HybridwatchError
from hybridwatch.pages.address import Address, Screen
from hybridwatch.pages.document import Document, Paragraph
from hybridwatch.pages.query import NotInStoreError, ViewQuery
from hybridwatch.pages.screens.screen import ScreenSource, Show, trouble_notice
from hybridwatch.system.home import extended

_OWN: Final[Mapping[str, Screen]] = {
    screen.name: screen
    for screen in (
        Screen("overview", "Overview"),
        Screen("scenario", "Scenario", figures=True),
        Screen("compare", "Compare", figures=True),
        Screen("sync", "CPU sync", figures=True),
        Screen("alerts", "Alerts", figures=True),
        Screen("releases", "Releases", "Evidence", show=f"{__name__}.builds:show_releases"),
        Screen("builds", "Builds and fixes", "Evidence"),
        Screen("sees", "Does the suite see?", "Evidence"),
        Screen("runs", "Runs and testbeds", "Evidence"),
        Screen("fleet", "Fleet", "Evidence"),
        Screen("run", "Run", "Evidence", listed=False, figures=True),
        Screen(
            "job", "Job of a fleet", "Evidence", listed=False, show=f"{__name__}.fleet:show_job"
        ),
    )
}

SCREENS: Final[Mapping[str, Screen]] = extended(_OWN, "hybridwatch.screens")
"""In the order of the navigation; the first is the home page. Other distributions add some."""


def open_view(source: ScreenSource, address: Address) -> Document:
    """Give what a view says, as ``build_view``, or why the store cannot be read."""
    try:
        return build_view(source, address)
    except HybridwatchError as error:
        trouble = trouble_notice("This view cannot be shown", error)
        return Document(SCREENS[address.screen].title, (trouble,), address=address)


def build_view(source: ScreenSource, address: Address) -> Document:
    """Give what a view says, with its whole address and what of that could not be shown.

    Raises:
        KeyError: There is no such screen.
        HybridwatchError: The store cannot be read.
    """
    screen = SCREENS[address.screen]
    show: Show = pkgutil.resolve_name(screen.show or f"{__name__}.{screen.name}:show")
    query = ViewQuery(address)
    try:
        document = show(source, query)
    except NotInStoreError as error:
        # Another thing of its kind would be taken for the one that is meant.
        blocks = tuple(map(Paragraph, error.instead))
        return Document(error.title, blocks, address=address, complaints=(str(error),))
    complaints = query.complaints()
    if complaints and not source.index.counts["runs"]:
        # A screen without runs reads no parameter, which is not the link's fault.
        complaints = ("The link cannot be followed: there is no run to show yet.",)
    return replace(document, address=query.resolved(), complaints=complaints)


__all__ = ["SCREENS", "Screen", "ScreenSource", "Show", "build_view", "open_view"]
