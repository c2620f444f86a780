"""By which rules an index was made: a folder for each, so that two versions never mix."""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from hybridwatch.index.reading import Headline
from hybridwatch.store import present_tools

_WORDS: Final = ("cause_text.py", "labels.py", "numbers.py", "sentence.py")
"""Where headlines come from."""

_READERS: Final = frozenset({"columns.py", "queries.py", "speed.py", "synthetic.py"})
"""Of the index's own code what makes no row that is stored."""

_LENGTH: Final = 16
"""Characters of a digest that name a folder."""


@cache
def rules_digest(headline: Headline) -> str:
    """Give a word that changes with whatever could change a row of the index.

    That is what a stored verdict names as its tools (the judging code, NumPy, SciPy, the
    processor's arithmetic), the index's own code that makes rows, and who says headlines, with its
    code. A process keeps to the rules that it began with, whatever becomes of the files.

    Args:
        headline: A function of a module.
    """
    tools = {**present_tools(), "headline": f"{headline.__module__}.{headline.__qualname__}"}
    total = hashlib.sha256(json.dumps(tools, sort_keys=True).encode())
    for source in _sources():
        total.update(f"{source.name} {hashlib.sha256(source.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:_LENGTH]


def _sources() -> Iterator[Traversable]:
    package = files("hybridwatch")
    own = {entry.name: entry for entry in (package / "index").iterdir()}
    yield from (own[name] for name in sorted(own) if name.endswith(".py") and name not in _READERS)
    yield from (package / "report" / name for name in _WORDS)
