"""Which builds are one line, of which the newest takes the place of the others.

A night gives every build a label of its own, and so does an edit of a patched tree. Who asks how
the nightly, or the patch, stands means the last one, and a history of it is one series.
"""

import re
from functools import lru_cache
from typing import Final, Protocol

LONGEST_LINE: Final = 64
"""Characters of a line that is stated when a run is measured."""
_LINE: Final = re.compile(rf"[A-Za-z0-9._+-]{{1,{LONGEST_LINE}}}")
_SWITCHES: Final = re.compile(r"[~+].*", re.DOTALL)
_CHANGED: Final = re.compile(r"(\d\.\d+)@[0-9a-f]{8,64}(?![0-9A-Za-z])")
"""A release whose code was changed: never in the line of the release itself."""
_DEVELOPMENT: Final = re.compile(
    r"(?<![0-9A-Za-z])\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?[.-]?dev\d+"
    r"(?:\+g[0-9a-f]{6,40}(?:\.d20\d{6})?)?(?![0-9A-Za-z])"
)
_ONE_OF_MANY: Final = re.compile(
    r"(?:^|[-_.:/@])(?:"
    r"20\d{6}|20\d\d-\d\d-\d\d"  # a date
    r"|(?<=@)[0-9a-f]{8,64}"  # the code of a build that is no release's
    r"|g?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"  # a commit
    r")(?![0-9A-Za-z])"
)
_NAMELESS: Final = "dev"
_RELEASED: Final = re.compile(
    r"(?:[A-Za-z]\w*-)*v?\d+\.\d+\.\d+(?:(?:a|b|rc|\.post)\d+)?(?:\+v[12])?"
)
"""The label of a release, such as ``cpu-0.28.0``, on either model runner: it never changes."""


class Named(Protocol):
    """What must be known of a build; an ``EngineBuild`` is one."""

    @property
    def label(self) -> str:
        """Its name with the switches."""

    @property
    def line(self) -> str | None:
        """The line that was stated; ``None`` where none was."""


def name_line(build: Named) -> str:
    """Name the line that a build belongs to.

    Switches of the label (``~fix``, ``+fault``) always keep a line of their own: a build with a
    planted fault says nothing about the nightly.
    """
    if not build.line:
        return derived_line(build.label)
    switches = _SWITCHES.search(build.label)
    return build.line + (switches[0] if switches else "")


@lru_cache(maxsize=4096)  # a store asks the same again and again
def derived_line(label: str) -> str:
    """Name the line of a build for which none was stated.

    Dates, commits and digests of code are taken off; a version under development becomes ``dev``.
    A released version is a line of its own: 0.28.0 does not take the place of 0.27.1.
    """
    changed = _CHANGED.sub(r"\1@changed", label)
    left = _ONE_OF_MANY.sub("", _DEVELOPMENT.sub(_NAMELESS, changed))
    if left == label:
        return label
    named = left.lstrip("-_.:/@")
    return named if named and named[0] not in "~+" else _NAMELESS + named


def is_release(line: str) -> bool:
    """Whether a line is one release, plain or with switches: no nightly takes its place."""
    return _RELEASED.fullmatch(_SWITCHES.sub("", line)) is not None


def compares_releases(baseline: str, contender: str) -> bool:
    """Whether two lines are two plain releases, so that what is between them never changes.

    A release against itself shows how quiet a machine is, and switches are the plugin's code: both
    may be otherwise tomorrow.
    """
    both = (baseline, contender)
    return baseline != contender and all(_RELEASED.fullmatch(line) for line in both)


def checked_line(text: str) -> str:
    """Give a stated line back; a ``ValueError`` says what was expected."""
    if not _LINE.fullmatch(text):
        raise ValueError(f"expected 1 to {LONGEST_LINE} letters, digits and any of . _ - +")
    return text
