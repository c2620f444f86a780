"""Runs that came with the repository: ``results/examples.txt``, an id on each line.

They show what a record, a verdict and a page look like before anything was measured. Nobody goes
on measuring them, so none of them is ever overdue.
"""

from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.store.reading import read_file

EXAMPLES: Final = "examples.txt"
_MOST_BYTES: Final = 2**20


def read_examples(results: Path) -> frozenset[str]:
    """Give the ids of a store's examples; none where the file is not there.

    Raises:
        RecordError: The file cannot be read.
    """
    path = results / EXAMPLES
    try:
        return frozenset(read_file(path, _MOST_BYTES).decode().split())
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{path}: expected the ids of runs: {error}") from error
