"""From the index to what alerts are derived from."""

import math
from functools import lru_cache
from typing import Final

import pandas as pd

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import Index
from hybridwatch.database.statements import STANDING
from hybridwatch.history.controls import ON_PURPOSE
from hybridwatch.history.definitions import ended_definitions
from hybridwatch.record.role import Role
from hybridwatch.triage import Judged, Question

_BAD: Final = [verdict.value for verdict in Verdict if verdict.is_bad_news]
_NEWS: Final = ["", *(role.value for role in Role if role not in ON_PURPOSE)]
"""Runs of one build have no role."""
_TOLD: Final = [*STANDING, "verdict", "effect", "run", "started_at", "gate"]


def judged_from(index: Index) -> list[Judged]:
    """Give every verdict on every question that ever had bad news, oldest first.

    Known-bad controls (``record.role``) are left out: they are bad on purpose. What was asked of a
    definition that has ended is answered by the one that goes on in its place.

    Args:
        index: A whole store; other questions than these never had an alert.
    """
    answers = index.verdicts(roles=_NEWS, ever=_BAD, only=_TOLD)
    ended = ended_definitions(index)
    places = zip(answers["scenario"], answers["testbed"], answers["digest"], strict=True)
    answers["digest"] = [ended.get(place, place[-1]) for place in places]
    # Column by column: row by row takes a second in a large store.
    *parts, verdicts, effects, runs, moments, gates = (answers[name].tolist() for name in _TOLD)
    questions = (_question(*values) for values in zip(*parts, strict=True))
    rows = zip(questions, verdicts, effects, runs, moments, gates, strict=True)
    return [_judged(*row) for row in rows]


@lru_cache(maxsize=2**14)  # each was asked in many runs
def _question(*parts: str) -> Question:
    return Question(**dict(zip(STANDING, parts, strict=True)))


def _judged(
    question: Question, value: str, effect: float, run: str, moment: pd.Timestamp, gate: str
) -> Judged:
    verdict = Verdict(value)
    return Judged(
        question=question,
        verdict=verdict,
        effect=None if math.isnan(effect) else effect,
        run_id=run,
        started_at=moment.to_pydatetime(),
        # The index asks a gate without a policy: it warns only of what Holm's control doubts.
        sure=not (verdict is Verdict.REGRESSION and gate == Action.WARN.value),
    )
