"""The alerts of a store: bad news, missed controls, what people decided, and what is overdue."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hybridwatch.analysis.alert_timeline import (
    CONTROL,
    AlertQuestion,
    JudgedMetric,
    Timeline,
    build_timelines,
)
from hybridwatch.analysis.alerts import Alert, AlertGroup, answered, group_alerts
from hybridwatch.analysis.detection import Detection, kind_of
from hybridwatch.analysis.freshness import Gap, LastMeasured, gaps, what_counts
from hybridwatch.analysis.noise import (
    LEARNED_FROM,
    Sessions,
    lasting_losses,
    lasting_reds,
    likely_reds,
)
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.moment import STANDING
from hybridwatch.database.queries import Index
from hybridwatch.errors import RecordError
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.controls import ControlRun, KnownScenarios, controls_among, known_in
from hybridwatch.history.runs import (
    bad_on_purpose,
    ended_definitions,
    list_contenders,
    one_at_a_time,
)
from hybridwatch.metrics import Kind, Metric, find_metric
from hybridwatch.records.identity import Role, compares_releases
from hybridwatch.records.store import read_baselines, read_examples

_BAD: Final = [verdict.value for verdict in Verdict if verdict.is_bad_news]
_NEWS: Final = ["", *(role.value for role in Role if not role.is_on_purpose)]
"""Runs of one build have no role."""
_COLUMNS: Final = [*STANDING, "verdict", "effect", "run", "started_at", "gate"]
_SIZES: Final = ["low", "high", "old"]
_ALIKE: Final = ["testbed", "metric", "statistic"]
"""What starts of an engine are expected to sway alike, in every scenario."""
_BUILD: Final = ["scenario", "contender"]
_NIGHT: Final = pd.Timedelta(hours=12)
TO_ERROR: Final = 2 * 1.96
"""Width of a 95 % interval in standard errors."""


@one_at_a_time
@lru_cache(maxsize=1)  # what an index says never changes
def judged_from(index: Index) -> tuple[JudgedMetric, ...]:
    """Give every verdict on every question that ever had bad news, oldest first.

    Known-bad controls are left out. What a definition that has ended leaves open is answered by
    the one that goes on in its place.
    """
    answers = index.verdicts(roles=_NEWS, ever=_BAD, only=[*_COLUMNS, *_SIZES])
    ended = ended_definitions(index)
    places = zip(answers["scenario"], answers["testbed"], answers["digest"], strict=True)
    answers["digest"] = [ended.get(place, place[-1]) for place in places]
    # Column by column: row by row takes a second in a large store.
    *parts, verdicts, effects, runs, moments, gates = (answers[name].tolist() for name in _COLUMNS)
    questions = (_question(*values) for values in zip(*parts, strict=True))
    lasting = _lasting(answers).tolist()
    rows = zip(questions, verdicts, effects, runs, moments, gates, lasting, strict=True)
    return tuple(
        JudgedMetric(
            question,
            Verdict(value),
            None if math.isnan(effect) else effect,
            run,
            moment.to_pydatetime(),
            # The index asks a gate without a policy: it warns only of what Holm's control doubts.
            sure=not (value == Verdict.REGRESSION.value and gate == Action.WARN.value),
            lasts=lasts,
        )
        for question, value, effect, run, moment, gate, lasts in rows
    )


@lru_cache(maxsize=1)  # what an index says never changes
def reds_within_luck(index: Index) -> frozenset[tuple[str, str, str]]:
    """Run, metric and statistic of reds that chance may give; none in young questions."""
    before: Counter[AlertQuestion] = Counter()
    found = set()
    for one in judged_from(index):
        question = one.question
        if not one.lasts and before[question] > LEARNED_FROM:
            found.add((one.run_id, question.metric, question.statistic))
        before[question] += 1
    return frozenset(found)


def _lasting(answers: pd.DataFrame) -> npt.NDArray[np.bool_]:
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
    """Say which verdicts are of the night and build, on any testbed, with which a red began."""
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


@lru_cache(maxsize=2**14)  # each is in many runs
def _question(*parts: str) -> AlertQuestion:
    return AlertQuestion(**dict(zip(STANDING, parts, strict=True)))


_VERDICTS: Final[Mapping[Detection | None, Verdict]] = {
    Detection.MISSED: Verdict.FAILED,
    Detection.CAUGHT: Verdict.EQUIVALENT,
}
"""What a control says as a verdict: one that could not be judged says nothing."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """Everything that was ever bad in a store, and the same by the runs in which it was."""

    everything: tuple[Timeline, ...]
    bad_in: Mapping[str, tuple[Timeline, ...]]


def find_alerts(
    results: Path, index: Index, checkout: Checkout, now: datetime
) -> tuple[Alert, ...]:
    """Derive every alert of a store, as ``answered`` orders them.

    What was put off until a moment is compared with ``now``, which has a time zone.
    """
    with open_triage(results) as database:
        decided = database.decisions()
    return answered(find_timelines(index, checkout).everything, decided, now)


def find_groups(
    results: Path, index: Index, checkout: Checkout, now: datetime
) -> tuple[AlertGroup, ...]:
    """Derive every alert as ``find_alerts`` does, those of one cause together."""
    # A label may be the same for many commits: the release goes with it.
    builds = {run: " ".join(build) for run, build in list_contenders(index).items()}
    return group_alerts(find_alerts(results, index, checkout, now), builds)


def find_timelines(index: Index, checkout: Checkout) -> Timelines:
    """Tell what the verdicts of a store say, whatever people decided."""
    return _timelines(index, checkout.policy, known_in(checkout.scenarios))


@one_at_a_time
@lru_cache(maxsize=1)  # what an index says never changes, and every view of the alerts needs it
def _timelines(index: Index, policy: Policy, known: frozenset[KnownScenarios]) -> Timelines:
    judged = (*judged_from(index), *judged_controls(controls_among(index, known)))
    timelines = build_timelines(judged, policy)
    bad_in: defaultdict[str, list[Timeline]] = defaultdict(list)
    for timeline in timelines:
        for run_verdict in timeline.run_verdicts:
            if run_verdict.cause is not None:
                bad_in[run_verdict.run_id].append(timeline)
    return Timelines(timelines, {run: tuple(found) for run, found in bad_in.items()})


def judged_controls(controls: Sequence[ControlRun]) -> Iterator[JudgedMetric]:
    """Yield what known-bad controls say: one not caught has failed; regressions are no news."""
    for control in controls:
        verdict = _VERDICTS.get(control.detection)
        if control.role is Role.KNOWN_BAD and verdict is not None:
            question = AlertQuestion(control.scenario, CONTROL, "", *control.lines, control.testbed)
            yield JudgedMetric(question, verdict, None, control.run, control.started_at)


def find_gaps(results: Path, index: Index, checkout: Checkout, now: datetime) -> tuple[Gap, ...]:
    """Find what the policy expects of a store, in time for ``now`` (with a time zone)."""
    measured = _measured(index, *_noted(results))
    if measured is None:
        return ()
    return gaps(measured, checkout.policy, now, checkout.scenarios)


def _noted(results: Path) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    try:
        pins, examples = read_baselines(results), read_examples(results)
    except RecordError:
        # A gate says what is wrong with the file; no page is to end by it.
        return frozenset(), frozenset()
    return frozenset((pin.scenario, pin.testbed) for pin in pins), examples


@lru_cache(maxsize=1)  # what an index says never changes
def _measured(
    index: Index, pinned: frozenset[tuple[str, str]], examples: frozenset[str]
) -> tuple[LastMeasured, ...] | None:
    """The newest runs that count, by scenario and testbed; ``None`` of examples alone."""
    runs = index.runs()
    every = runs[runs["side"] == 0]
    runs = every[~every["run"].isin(examples)]
    if runs.empty and not every.empty:
        return None
    bad = runs["record"].isin(bad_on_purpose(index))
    others = runs[~bad]
    places = zip(others["scenario"], others["testbed"], strict=True)
    compared = bool((others["sides"] == 2).any()) or not pinned.isdisjoint(places)
    return what_counts(_newest(others), _newest(runs[bad]), compared=compared)


def _newest(runs: pd.DataFrame) -> Iterator[LastMeasured]:
    rows: Iterator[Any] = runs.drop_duplicates(["scenario", "testbed"], keep="last").itertuples()
    for row in rows:
        yield LastMeasured(row.scenario, row.testbed, row.started_at.to_pydatetime(), row.run)
