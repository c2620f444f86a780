"""Views: which screens there are, and the state of a view as an address, both ways.

``ViewQuery`` says what an address means to a screen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode

HOME: Final = "overview"
"""The screen at the root."""
EVERY: Final = "all"
"""Instead of a scenario: every one that measured both builds."""


@dataclass(frozen=True, slots=True)
class Address:
    """A view: its screen and its state, in order; several values of one name are several pairs."""

    screen: str
    parameters: tuple[tuple[str, str], ...]

    def href(self) -> str:
        """Write it relative to any other view."""
        path = "./" if self.screen == HOME else self.screen
        return f"{path}?{self.query()}" if self.parameters else path

    def query(self) -> str:
        """Write the parameters, without the question mark."""
        return urlencode(self.parameters)

    def values(self, name: str) -> tuple[str, ...]:
        """Give every value of a parameter."""
        return tuple(value for each, value in self.parameters if each == name)

    def without(self, *names: str) -> "Address":
        """Leave parameters out."""
        kept = tuple(pair for pair in self.parameters if pair[0] not in names)
        return Address(self.screen, kept)


def address(screen: str, **parameters: str | int | Iterable[str] | None) -> Address:
    """Name a view by its screen and parameters, of one value, of several, or of none."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        several = [str(value)] if isinstance(value, str | int) else value or ()
        pairs += [(name, each) for each in several]
    return Address(screen, tuple(pairs))


def builds_address(baseline: str, contender: str) -> Address:
    """Name the view of two builds in every scenario."""
    return address("compare", scenario=EVERY, contender=contender, baseline=baseline)


def read_query(screen: str, query: str) -> Address:
    """Read what stands behind the question mark of an address."""
    pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    return Address(screen, tuple(pairs))


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen as the navigation lists it.

    Attributes:
        name: Its place in addresses.
        listed: Whether the navigation shows it; else it is reached by links.
        figures: Whether it has some, as a rule.
        show: Its function (``screens.screen.Show``), as ``module:function``; when empty, ``show``
            in the module of its name in ``screens``.
        after: Of a screen that another distribution adds, the one behind which it stands.
    """

    name: str
    title: str
    section: str = ""
    listed: bool = True
    figures: bool = False
    show: str = ""
    after: str = ""
