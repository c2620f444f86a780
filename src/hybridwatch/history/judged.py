"""From the index to what alerts are derived from."""

import math
from collections import Counter
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hybridwatch.analysis.alert_timeline import AlertQuestion, JudgedMetric
from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.noise import (
    LEARNED_FROM,
    Sessions,
    lasting_losses,
    lasting_reds,
    likely_reds,
)
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import Index
from hybridwatch.database.statements import STANDING
from hybridwatch.history.definitions import ended_definitions
from hybridwatch.metrics import Kind, Metric, find_metric
from hybridwatch.records.line import compares_releases
from hybridwatch.records.role import Role

_BAD: Final = [verdict.value for verdict in Verdict if verdict.is_bad_news]
_NEWS: Final = ["", *(role.value for role in Role if not role.is_on_purpose)]
"""Runs of one build have no role."""
_TOLD: Final = [*STANDING, "verdict", "effect", "run", "started_at", "gate"]
_SIZES: Final = ["low", "high", "old"]
_ALIKE: Final = ["testbed", "metric", "statistic"]
"""What starts of an engine are expected to sway alike, whatever the scenario."""
_BUILD: Final = ["scenario", "contender"]
_NIGHT: Final = pd.Timedelta(hours=12)
TO_ERROR: Final = 2 * 1.96
"""Width of a 95 % interval in standard errors."""


def judged_from(index: Index) -> list[JudgedMetric]:
    """Give every verdict on every question that ever had bad news, oldest first.

    Known-bad controls (``records.role``) are left out: they are bad on purpose. What was asked of a
    definition that has ended is answered by the one that goes on in its place.
    """
    answers = index.verdicts(roles=_NEWS, ever=_BAD, only=[*_TOLD, *_SIZES])
    ended = ended_definitions(index)
    places = zip(answers["scenario"], answers["testbed"], answers["digest"], strict=True)
    answers["digest"] = [ended.get(place, place[-1]) for place in places]
    # Column by column: row by row takes a second in a large store.
    *parts, verdicts, effects, runs, moments, gates = (answers[name].tolist() for name in _TOLD)
    questions = (_question(*values) for values in zip(*parts, strict=True))
    lasting = _lasting(answers).tolist()
    rows = zip(questions, verdicts, effects, runs, moments, gates, lasting, strict=True)
    return [_judged(*row) for row in rows]


@lru_cache(maxsize=1)  # what an index says never changes
def reds_within_luck(index: Index) -> frozenset[tuple[str, str, str]]:
    """Run, metric and statistic of reds that are no more than chance gives from run to run.

    In a young question, of which that much is only assumed, there is none.
    """
    before: Counter[AlertQuestion] = Counter()
    found = set()
    for one in judged_from(index):
        question = one.question
        if not one.lasts and before[question] > LEARNED_FROM:
            found.add((one.run_id, question.metric, question.statistic))
        before[question] += 1
    return frozenset(found)


def _lasting(answers: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Say of each verdict whether it is more than chance, such as what starts differ by."""
    answers = answers.reset_index(drop=True)
    lasts = np.ones(len(answers), dtype=np.bool_)
    begins, likely = np.zeros((2, len(answers)), dtype=np.bool_)
    for (_, name, _), alike in answers.groupby(_ALIKE, sort=False):
        kind = kind_of(name)
        is_red = (alike["verdict"] == Verdict.REGRESSION.value).any()
        if kind in {None, Kind.EXACT} or not is_red:
            continue
        measured = alike[(alike[["effect", "low", "high"]] > -1).all(axis=1) & (alike["old"] > 0)]
        found = [own for _, own in measured.groupby(list(STANDING), sort=False)]
        sessions = [_sessions(own, find_metric(str(name))) for own in found]
        for rows, own in zip(found, sessions, strict=True):
            if compares_releases(rows["baseline"].iloc[0], rows["contender"].iloc[0]):
                continue  # measured once, and a finding for good: no person is called for it
            if kind is Kind.PROPORTION:
                lasts[rows.index[own.reds]] = lasting_losses(own)[own.reds]
                continue
            standing = lasting_reds(own, sessions)
            lasts[rows.index[own.reds]] = standing[own.reds]
            begins[rows.index] = standing & ~np.concatenate(([False], standing[:-1]))
            likely[rows.index] = likely_reds(own, sessions)
    return lasts | (likely & _near(begins, answers))


def _near(begins: npt.NDArray[np.bool_], answers: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Say which verdicts are of the night and build with which a red began that stands.

    On another testbed the build is the same, and the luck of its starts is not.
    """
    near = np.zeros(len(answers), dtype=np.bool_)
    for _, alike in answers.groupby(_BUILD, sort=False):
        moments = alike["started_at"].to_numpy()
        apart = np.abs(moments[:, None] - moments[begins[alike.index]])
        near[alike.index] = (apart < _NIGHT).any(axis=1)
    return near


def _sessions(rows: pd.DataFrame, metric: Metric) -> Sessions:
    way = metric.better.worse
    effects, low, high = (rows[part].to_numpy() for part in ("effect", "low", "high"))
    if metric.kind.has_noise:
        effects, low, high = map(np.log1p, (effects, low, high))
    return Sessions(
        moments=np.asarray(rows["started_at"].astype("int64"), dtype=np.int64),
        effects=way * effects,
        errors=(high - low) / TO_ERROR,
        baselines=way * np.log(rows["old"].to_numpy()),
        reds=(rows["verdict"] == Verdict.REGRESSION.value).to_numpy(),
    )


@lru_cache(maxsize=2**14)  # each was asked in many runs
def _question(*parts: str) -> AlertQuestion:
    return AlertQuestion(**dict(zip(STANDING, parts, strict=True)))


def _judged(
    question: AlertQuestion,
    value: str,
    effect: float,
    run: str,
    moment: pd.Timestamp,
    gate: str,
    lasts: bool,
) -> JudgedMetric:
    verdict = Verdict(value)
    return JudgedMetric(
        question=question,
        verdict=verdict,
        effect=None if math.isnan(effect) else effect,
        run_id=run,
        started_at=moment.to_pydatetime(),
        # The index asks a gate without a policy: it warns only of what Holm's control doubts.
        sure=not (verdict is Verdict.REGRESSION and gate == Action.WARN.value),
        lasts=lasts,
    )
