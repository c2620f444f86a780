"""From the index to what alerts are derived from."""

from typing import Any, Final

import pandas as pd

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import Index
from hybridwatch.database.statements import STANDING
from hybridwatch.history.controls import ON_PURPOSE
from hybridwatch.record.role import Role
from hybridwatch.triage import Judged, Question

_BAD: Final = [verdict.value for verdict in Verdict if verdict.is_bad_news]
_NEWS: Final = [role.value for role in Role if role not in ON_PURPOSE]
_TOLD: Final = [*STANDING, "verdict", "effect", "run", "started_at", "gate"]


def judged_from(index: Index) -> list[Judged]:
    """Give every verdict on every question that ever had bad news, oldest first.

    Known-bad controls (``record.role``) are left out: they are bad on purpose.

    Args:
        index: A whole store; other questions than these never had an alert.
    """
    answers = index.verdicts(roles=_NEWS, ever=_BAD, only=_TOLD)
    return [_judged(row) for row in answers.itertuples(index=False)]


def _judged(row: Any) -> Judged:
    verdict = Verdict(row.verdict)
    return Judged(
        question=Question(**{part: getattr(row, part) for part in STANDING}),
        verdict=verdict,
        effect=None if pd.isna(row.effect) else float(row.effect),
        run_id=row.run,
        started_at=row.started_at.to_pydatetime(),
        # The index asks a gate without a policy: it warns only of what Holm's control doubts.
        sure=not (verdict is Verdict.REGRESSION and row.gate == Action.WARN.value),
    )
