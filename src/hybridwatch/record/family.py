"""Which builds are one series, of which the newest takes the place of the others.

A night gives every build a label of its own, and so does an edit of a patched tree. Who asks how
the nightly, or the patch, stands means the last one.
"""

import re
from typing import Final

_NIGHT: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"20\d{6}|20\d\d-\d\d-\d\d"  # a date
    r"|\d+(?:\.\d+)*[.-]?dev\d+"  # a version under development
    r"|(?<=@)[0-9a-f]{8,64}"  # the code of a build that is no release's
    r"|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"  # a commit
    r")(?![0-9A-Za-z])"
)


def family_of(label: str) -> str:
    """Name the series that a build belongs to.

    A released version is a build of its own: 0.28.0 does not take the place of 0.27.1.

    Returns:
        The label with ``*`` for dates, development versions and commits; the label itself where
        it has none of these.
    """
    return _NIGHT.sub("*", label)
