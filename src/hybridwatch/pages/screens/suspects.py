"""Between which two runs an alert's cause came, and what changed between them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pandas as pd

from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.change_point import NOT_ONE_COMMIT
from hybridwatch.analysis.change_point.place import FEWEST, find_onset
from hybridwatch.analysis.difference import Culprits, culprit_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.history.alerts import TO_ERROR
from hybridwatch.history.runs import bad_on_purpose, runs_by_id
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Command,
    Folded,
    Inline,
    Link,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.screens.screen import ScreenSource, run_link
from hybridwatch.records.store import Broken
from hybridwatch.reports.alert_text import is_control
from hybridwatch.reports.sentence import bisect_command
from hybridwatch.scenarios.scenario import ACCURACY

_SINCE_GOOD: Final = ("What changed since it was good", "last good", "first bad")
_PLACED: Final = ("What changed when it went bad", "before", "after")
_FROM_BASELINE: Final = ("What differs from the baseline", "baseline", "contender")
_GOOD: Final = [one.value for one in Verdict if one.is_good_news]
_MEASURED: Final = [one.value for one in Verdict if one.is_measured]
_STARTS: Final = {
    _SINCE_GOOD: ("Good in ", "; bad since "),
    _PLACED: ("With 95 % it came after ", " and not after "),
    _FROM_BASELINE: ("No run before it was good. The baseline was ", "; bad since "),
}
_LATEST: Final = 60
"""Earlier runs that show when it began."""
_TAG: Final = re.compile(r"v\d+(\.\d+)+")
_BY_ABSENCE: Final = frozenset({Area.ENGINE, Area.MEASUREMENT})


_Words: TypeAlias = tuple[str, str, str]
"""A title, and names of two runs between which a cause lies."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """What differs between the last side before an alert's cause and the first that has it."""

    culprits: Culprits
    words: _Words


def list_suspects(alert: Alert, source: ScreenSource) -> Suspects | None:
    """Find what changed between two runs of which the first is good and the second bad.

    Where enough runs of the same builds say by how much a value differs, these hold the first bad
    run between them with 95 % (``find_onset``). Else they are the last good run of the same builds,
    or of any build of the scenario on the testbed, and the first bad one; or the sides of that one,
    whose baseline was good at the same time. Two records are read. ``None`` comes where it may have
    come slowly, and where one of the two cannot be read.
    """
    ends = _ends(alert, source)
    if ends is None or (bad := _side(ends[1], source)) is None:
        return None
    good = _side(ends[0], source) if ends[0] else OneSide(bad.run, 0)
    return Suspects(culprit_between(good, bad), ends[2]) if good else None


def suspects_section(alert: Alert, found: Suspects | None, source: ScreenSource) -> Iterator[Block]:
    """Lay out what changed, except for a control, whose fix was taken out on purpose."""
    if is_control(alert):
        return
    if _ends(alert, source) is None:
        words = f"A drift over many runs fits what was measured, too; {NOT_ONE_COMMIT}."
        yield Section("It may have come slowly", (Paragraph(words),))
    if found is None:
        return
    good, bad = found.culprits.good, found.culprits.bad
    start, end = _STARTS[found.words]
    line: list[Inline] = [start, *_named(good, source), end, *_named(bad, source), ". "]
    ways = (f"{side.run.id}#{side.index}" for side in (good, bad))
    sides = dict(zip(("baseline", "contender"), ways, strict=True))
    view = address("compare", scenario=bad.run.scenario.id, **sides)
    line += [Link("Compare the two", view), "."]
    yield Section(found.words[0], (Paragraph(tuple(line)), _table(found)))


def search_commands(alert: Alert, found: Suspects) -> Iterator[Block]:
    """Give the command that finds which release, commit or file it was."""
    if (search := find_search(alert, found)) is None:
        return
    good, bad, metric, in_clone = search
    command = bisect_command(alert.subject.scenario, good, bad, metric, in_clone=in_clone)
    yield Command(command, "Search it" + (" in a clone of vLLM" if in_clone else ""))


def find_search(alert: Alert, found: Suspects) -> tuple[str, str, str, bool] | None:
    """Give the good end, the bad end, the metric (empty for any), and whether an end is a commit.

    ``None`` where nothing lies between a build and itself.
    """
    culprits, lead = found.culprits, alert.cause.lead
    ends = culprits.good.build.label, culprits.bad.build.label
    in_clone = False
    if culprits.commits is not None:
        ends = culprits.commits.old, culprits.commits.new
        in_clone = not all(_TAG.fullmatch(end) for end in ends)
    if ends[0] == ends[1]:
        return None
    metric = "alive" if alert.subject.area is Area.ENGINE else lead.metric
    if metric.startswith(f"{ACCURACY}."):
        metric = ""  # which contract broke is for the search to say
    return *ends, metric, in_clone


def _table(found: Suspects) -> Block:
    if not found.culprits.facts:
        return Paragraph(
            "Nothing that the records know of: release, packages, wheel, fixes, flags and machine "
            "are the same. Then it is what no record sees, or chance: measure it again.",
            quiet=True,
        )
    title, old, new = found.words
    columns = ("what", old, new)
    rows = tuple((fact.what, fact.old, fact.new) for fact in found.culprits.facts)
    table = Table(title, columns, rows)
    name = f"{plural(len(rows), 'fact')} of the two that differ"
    return Folded(f"{name}: {', '.join(fact.what for fact in found.culprits.facts)}", (table,))


def _named(side: OneSide, source: ScreenSource) -> tuple[Inline, ...]:
    run, build = side.run, side.build
    release = "" if build.release in build.label else f", {build.release}"
    return (run_link(run.id), f" ({build.label}{release}, ", source.ago(run.started_at), ")")


def _side(run_id: str, source: ScreenSource) -> OneSide | None:
    """Read the contender of a run."""
    entry = source.entry(run_id)
    if entry is None or isinstance(entry, Broken):
        return None
    return OneSide(entry.run, len(entry.run.builds) - 1)


def _ends(alert: Alert, source: ScreenSource) -> tuple[str, str, _Words] | None:
    """Choose the last good run (empty for the bad one's baseline), the first bad one, and words.

    ``None`` comes where it may have come slowly.
    """
    opened = alert.opened_by
    answers = _answers(alert, source)
    if answers is None:
        return "", opened.run_id, _FROM_BASELINE
    mine = answers[
        (answers["baseline"] == alert.subject.baseline)
        & (answers["contender"] == alert.subject.contender)
    ]
    sized = _sized(mine, alert)
    bad = int((sized["started_at"] < pd.Timestamp(opened.started_at)).sum())
    if bad >= FEWEST and opened.run_id in sized["run"].iloc[bad : bad + 1].tolist():
        effects, low, high = (np.log1p(sized[name]) for name in ("effect", "low", "high"))
        place = find_onset(effects.to_numpy(), ((high - low) / TO_ERROR).to_numpy(), bad)
        runs = sized["run"].tolist()
        return (runs[place.first - 1], runs[place.last], _PLACED) if place else None
    wanted = _MEASURED if alert.subject.area in _BY_ABSENCE else _GOOD
    for some in (mine, answers):
        is_earlier = some["started_at"] < pd.Timestamp(opened.started_at)
        good = some.loc[is_earlier & some["verdict"].isin(wanted), "run"]
        if not good.empty:
            return str(good.iloc[-1]), opened.run_id, _SINCE_GOOD
    return "", opened.run_id, _FROM_BASELINE


def _answers(alert: Alert, source: ScreenSource) -> pd.DataFrame | None:
    """Give every answer of the testbed to what opened an alert, oldest first."""
    opened = alert.opened_by
    row = runs_by_id(source.index).get(opened.run_id)
    if opened.cause is None or row is None:
        return None
    lead, found = opened.cause.lead, source.index.verdicts(scenario=alert.subject.scenario)
    wanted = row.digest, alert.subject.testbed, lead.metric, lead.statistic
    for name, value in zip(("digest", "testbed", "metric", "statistic"), wanted, strict=True):
        found = found[found[name] == value]
    return found[~found["record"].isin(bad_on_purpose(source.index))]


def _sized(answers: pd.DataFrame, alert: Alert) -> pd.DataFrame:
    """Keep the runs that say how large it is, from the last time that it was over to the next.

    What was over for a few runs only, as a drift is at first, was never over.
    """
    opened = pd.Timestamp(alert.opened_by.started_at)
    for end in (pd.Timestamp(one.by.started_at) for one in alert.transitions if one.change.is_end):
        since, until = answers["started_at"] >= end, answers["started_at"] < opened
        if end >= opened:
            answers = answers[~since]
        elif (since & until).sum() >= FEWEST:
            answers = answers[since]
    known = answers[(answers[["effect", "low", "high"]] > -1).all(axis=1)]
    earlier = int((known["started_at"] < opened).sum())
    return known.iloc[max(earlier - _LATEST, 0) :]
