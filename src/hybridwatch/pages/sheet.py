"""The script that the live page and the saved one share, ``sheet.js``."""

from importlib.resources import files
from typing import Final

SHEET: Final = files("hybridwatch.pages").joinpath("sheet.js").read_text(encoding="utf-8")
"""Classes for a page's own script: ``Sheet``, which is a part of a page."""
