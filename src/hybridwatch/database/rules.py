"""By which rules what is derived was made: other rules make it again."""

import hashlib
import json
from functools import cache
from typing import Final

from hybridwatch.analysis.rules_version import present_tools
from hybridwatch.database.schema import ROWS_VERSION

_LENGTH: Final = 16
"""Characters of a digest."""


@cache
def rules_digest() -> str:
    """Give a word that changes with whatever could change a derived row.

    That is what a stored verdict names as its tools (the version of the rules, NumPy, SciPy, the
    processor's arithmetic), and the version of the rows.
    """
    hangs_on = {**present_tools(), "rows": str(ROWS_VERSION)}
    return hashlib.sha256(json.dumps(hangs_on, sort_keys=True).encode()).hexdigest()[:_LENGTH]
