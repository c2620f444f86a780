"""What an index says of the runs that compare builds; controls are red or green on purpose."""

from datetime import datetime
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from hybridwatch.database.queries import Index
from hybridwatch.history.controls import roles_of
from hybridwatch.history.definitions import ended_definitions
from hybridwatch.record.role import Role

_MOMENTS: Final = 4
"""Beginnings of "since" of which the answer is kept: those that a reader can pick, and one."""


class Comparisons:
    """The verdicts of an index without those of controls, kept, since an index never changes.

    Definitions of a scenario that have ended say nothing of what holds now.

    Args:
        index: A store.

    Attributes:
        latest: As ``Index.latest_verdicts``; to be read only.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        roles = roles_of(index).items()
        self._controls = {record for record, role in roles if role is not Role.COMPARISON}
        self.latest = self._without_controls(index.latest_verdicts())
        self._changed = lru_cache(maxsize=_MOMENTS)(self._find_changed)

    def changed_since(self, moment: datetime) -> pd.DataFrame:
        """Give what ``Index.changed_since`` does, by the minute; to be read only."""
        return self._changed(moment.replace(second=0, microsecond=0))

    def _find_changed(self, moment: datetime) -> pd.DataFrame:
        return self._without_controls(self._index.changed_since(moment))

    def _without_controls(self, verdicts: pd.DataFrame) -> pd.DataFrame:
        names = ("scenario", "testbed", "digest")
        places = zip(*(verdicts[name] for name in names), strict=True)
        ended = ended_definitions(self._index)
        goes_on = np.fromiter((place not in ended for place in places), bool, len(verdicts))
        return verdicts[goes_on & ~verdicts["record"].isin(self._controls)]


@lru_cache(maxsize=1)  # an index is large: of no other is anything kept
def comparisons_of(index: Index) -> Comparisons:
    """Give the comparisons of an index."""
    return Comparisons(index)
