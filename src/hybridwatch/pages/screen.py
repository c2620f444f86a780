"""A screen as the navigation lists it, before anything of it is loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen as the navigation lists it.

    Attributes:
        name: Its place in addresses.
        listed: Whether the navigation shows it; else it is reached by links.
        figures: Whether it has some, as a rule.
        module: Where its function ``show`` is (``screens.screen.Show``); when empty, the module of
            its name in ``screens``.
        after: Of a screen that another distribution adds, the one behind which it stands.
    """

    name: str
    title: str
    section: str = ""
    listed: bool = True
    figures: bool = False
    module: str = ""
    after: str = ""
