"""In which order tests run, and on which worker."""

from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

ROOT: Final = Path(__file__).parents[1]

LONGEST_FIRST: Final = (
    "tests/engine/test_smoke_run.py",
    "tests/dashboard/browser",
    "tests/engine/padded_rows",
    "tests/e2e/test_wheel.py",
    "tests/e2e/test_nightly.py",
    "tests/engine/test_families.py",
    "tests/engine/test_data_parallel.py",
    "tests/engine/test_decoding_rows.py",
    "tests/engine/test_disaggregation.py",
    "tests/engine/test_kernels.py",
    "tests/engine/test_speculation.py",
    "tests/engine/test_oracle.py",
    "tests/engine/test_recipes.py",
    "tests/e2e/test_story.py",
)
"""Groups that take a minute or more: begun last, one would keep a worker alone at the end."""


@cache
def group_of(file: str) -> str:
    """The tests that one worker takes together, since they share what their fixtures start.

    That is a file, or a folder with an ``__init__.py``, whose ``conftest.py`` then has fixtures of
    the scope ``package``.
    """
    folder = Path(file).parent
    return folder.as_posix() if (ROOT / folder / "__init__.py").is_file() else file


def arrange(items: list[pytest.Item]) -> None:
    """Put the longest groups first, and last in its group what ends what the others share.

    Otherwise the order stays as it is: that of the files, or of a seed.
    """
    ranks = {group: place for place, group in enumerate(LONGEST_FIRST)}
    groups = [group_of(item.nodeid.partition("::")[0]) for item in items]
    for group in groups:
        ranks.setdefault(group, len(ranks))
    keys = {
        item: (ranks[group], item.get_closest_marker("last") is not None)
        for item, group in zip(items, groups, strict=True)
    }
    items.sort(key=keys.__getitem__)


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc] # xdist is not typed
    """Gives a whole group to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])
