"""Labels that name the same build tomorrow: a command that is kept must not mean another one."""

import re
from typing import Final

from hybridwatch.records.identity import EngineBuild

_NUMBERED: Final = re.compile(r"\d+\.\d+")
_CODE: Final = "@"
_RELEASE: Final = re.compile(r"\d+(\.\d+)+((rc|\.post)\d+)?")


def is_lasting(build: EngineBuild) -> bool:
    """Whether the label holds a version or the code; ``adopted`` is another build each day.

    A label that holds the code is refused once the code is another.
    """
    return _CODE in build.label or _NUMBERED.search(build.name) is not None


def lasting_label(build: EngineBuild) -> str:
    """Give a label that names the same build tomorrow.

    Where the build's own does not, it is that of the release on its accelerator, with the same
    switches. A build that is no release has none: its own label again, and ``is_lasting`` says so.
    """
    if is_lasting(build) or not _RELEASE.fullmatch(build.release):
        return build.label
    return f"{build.accelerator}-{build.release}{build.label.removeprefix(build.name)}"
