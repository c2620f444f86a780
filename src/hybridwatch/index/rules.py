"""By which rules an index was made: a folder for each, so that two versions never mix."""

import hashlib
import json
from functools import cache
from typing import Final

from hybridwatch.analysis.tools import present_tools
from hybridwatch.index.reading import Headline
from hybridwatch.index.tables import ROWS_VERSION

_LENGTH: Final = 16
"""Characters of a digest that name a folder."""


@cache
def rules_digest(headline: Headline) -> str:
    """Give a word that changes with whatever could change a row of the index.

    That is what a stored verdict names as its tools (the version of the rules, NumPy, SciPy, the
    processor's arithmetic), the version of the rows, and who says headlines.

    Args:
        headline: A function of a module.
    """
    hangs_on = {
        **present_tools(),
        "rows": str(ROWS_VERSION),
        "headline": f"{headline.__module__}.{headline.__qualname__}",
    }
    return hashlib.sha256(json.dumps(hangs_on, sort_keys=True).encode()).hexdigest()[:_LENGTH]
