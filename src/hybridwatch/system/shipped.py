"""Where what is shipped lies: scenarios, models, right answers, builds, the plugin, the dashboard.

In a checkout these are folders of the repository. A wheel carries them inside ``hybridwatch``, in
the same places relative to each other (``setup.py`` puts them there). No other module may work out
such a path.
"""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DATA: Final = _PACKAGE / "data"


def is_checkout() -> bool:
    """Whether this code runs from a checkout, in which people edit what is shipped."""
    return not _DATA.is_dir()


def shipped() -> Path:
    """Give the folder that has ``scenarios``, ``models``, ``engine`` and the rest below it."""
    return _PACKAGE.parents[1] if is_checkout() else _DATA
