"""What an index says of the runs that compare builds; controls are red or green on purpose."""

import numpy as np
import pandas as pd

from hybridwatch.database.queries import Index
from hybridwatch.history.controls import roles_of
from hybridwatch.history.definitions import ended_definitions
from hybridwatch.history.kept import kept_of_one_index
from hybridwatch.records.role import Role


@kept_of_one_index
def latest_comparisons(index: Index, /) -> pd.DataFrame:
    """Give ``Index.latest_verdicts`` without those of controls; to be read only.

    Definitions of a scenario that have ended say nothing of what holds now.
    """
    roles = roles_of(index).items()
    controls = {record for record, role in roles if role is not Role.COMPARISON}
    latest, ended = index.latest_verdicts(), ended_definitions(index)
    places = zip(latest["scenario"], latest["testbed"], latest["digest"], strict=True)
    goes_on = np.fromiter((place not in ended for place in places), bool, len(latest))
    return latest[goes_on & ~latest["record"].isin(controls)]
