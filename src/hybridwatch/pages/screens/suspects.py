"""What changed between the last good run and the first bad one of an alert."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.culprit import Culprits, culprit_between
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.history.controls import bad_on_purpose
from hybridwatch.history.runs import runs_by_id
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Column,
    Command,
    Inline,
    Link,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.screens.screen import Source
from hybridwatch.report.alert_text import is_control
from hybridwatch.report.sentence import bisect_command
from hybridwatch.scenario.scenario import ACCURACY
from hybridwatch.store import Broken
from hybridwatch.triage import Alert

_SINCE_GOOD: Final = ("What changed since it was good", "last good", "first bad")
_BESIDE: Final = ("What differs from the baseline", "baseline", "contender")
_GOOD: Final = [Verdict.EQUIVALENT.value, Verdict.IMPROVEMENT.value]
_MEASURED: Final = [*_GOOD, Verdict.REGRESSION.value, Verdict.INCONCLUSIVE.value]
_TAG: Final = re.compile(r"v\d+(\.\d+)+")
_BY_ABSENCE: Final = frozenset({Area.ENGINE, Area.MEASUREMENT})


@dataclass(frozen=True, slots=True)
class Suspects:
    """Where the cause of an alert is to be looked for.

    Attributes:
        culprits: What differs between the last good side and the first bad one.
        was_good: Whether the good side was judged good; else it is the baseline of the bad run.
    """

    culprits: Culprits
    was_good: bool


def suspects_of(alert: Alert, source: Source) -> Suspects | None:
    """Find what changed between the last good run and the first bad one.

    The last good run is of the same builds; else the newest good one of any build of the scenario
    on the testbed; else the baseline of the first bad run, which was good beside it. Two records
    are read.

    Returns:
        ``None`` where one of the two cannot be read.
    """
    bad = _side(alert.opened_by.run_id, source)
    if bad is None:
        return None
    run = _last_good(alert, source)
    good = _side(run, source) if run else OneSide(bad.run, 0)
    return Suspects(culprit_between(good, bad), bool(run)) if good else None


def suspects_section(alert: Alert, source: Source) -> Iterator[Block]:
    """Lay out what changed, with the commits and a way to compare both runs.

    A control that was not caught has nothing of the kind: its fix was taken out on purpose.
    """
    found = None if is_control(alert) else suspects_of(alert, source)
    if found is None:
        return
    good, bad = found.culprits.good, found.culprits.bad
    start = "Good in " if found.was_good else "No run before it was good. The baseline was "
    line: list[Inline] = [
        start,
        *_named(good, source),
        "; bad since ",
        *_named(bad, source),
        ". ",
    ]
    if commits := found.culprits.commits:
        line += ["Commits between them: ", Link(commits.text, commits.url), ". "]
    sides = {"baseline": good, "contender": bad}
    view = address(
        "compare",
        scenario=bad.run.scenario.id,
        **{role: f"{side.run.id}#{side.index}" for role, side in sides.items()},
    )
    line += [Link("Compare the two", view), "."]
    words = _SINCE_GOOD if found.was_good else _BESIDE
    blocks = (Paragraph(tuple(line)), _table(found.culprits, words), *_search(alert, found))
    yield Section(words[0], blocks)


def _search(alert: Alert, found: Suspects) -> Iterator[Block]:
    """Give the command that finds which release, commit or file it was."""
    culprits, lead = found.culprits, alert.cause.lead
    ends = culprits.good.build.label, culprits.bad.build.label
    in_clone = False
    if culprits.commits is not None:
        ends = culprits.commits.old, culprits.commits.new
        in_clone = not all(_TAG.fullmatch(end) for end in ends)
    if ends[0] == ends[1]:
        return  # nothing lies between a build and itself
    metric = "alive" if alert.matter.area is Area.ENGINE else lead.metric
    if metric.startswith(f"{ACCURACY}."):
        metric = ""  # which contract broke is for the search to say
    command = bisect_command(alert.matter.scenario, *ends, metric, in_clone=in_clone)
    title = "Search for the release, commit or file"
    yield Command(command, title + (", in a clone of vLLM" if in_clone else ""))


def _table(culprits: Culprits, words: tuple[str, str, str]) -> Block:
    if not culprits.facts:
        return Paragraph(
            "Nothing that the records know of: release, packages, wheel, fixes, flags and machine "
            "are the same. Then it is what no record sees, or chance: measure it again.",
            quiet=True,
        )
    title, old, new = words
    columns = (Column("what"), Column(old), Column(new))
    rows = tuple((fact.what, fact.old, fact.new) for fact in culprits.facts)
    return Table(title, columns, rows)


def _named(side: OneSide, source: Source) -> Iterator[Inline]:
    run, build = side.run, side.build
    yield Link(f"run\N{NO-BREAK SPACE}{run.id}", address("run", run=run.id))
    release = "" if build.release in build.label else f", {build.release}"
    yield f" ({build.label}{release}, "
    yield source.ago(run.started_at)
    yield ")"


def _side(run_id: str, source: Source) -> OneSide | None:
    """Read the contender of a run."""
    entry = source.entry(run_id)
    if entry is None or isinstance(entry, Broken):
        return None
    return OneSide(entry.run, len(entry.run.builds) - 1)


def _last_good(alert: Alert, source: Source) -> str:
    """Give the id of the newest good run before the first bad one; empty without any."""
    matter, opened = alert.matter, alert.opened_by
    row = runs_by_id(source.index).get(opened.run_id)
    if opened.cause is None or row is None:
        return ""
    lead = opened.cause.lead
    earlier = source.index.verdicts(scenario=matter.scenario)
    wanted = {
        "digest": row.digest,
        "testbed": matter.testbed,
        "metric": lead.metric,
        "statistic": lead.statistic,
    }
    for name, value in wanted.items():
        earlier = earlier[earlier[name] == value]
    earlier = earlier[earlier["started_at"] < pd.Timestamp(opened.started_at)]
    good = _MEASURED if matter.area in _BY_ABSENCE else _GOOD
    earlier = earlier[
        earlier["verdict"].isin(good) & ~earlier["record"].isin(bad_on_purpose(source.index))
    ]
    mine = (earlier["baseline"] == matter.baseline) & (earlier["contender"] == matter.contender)
    found = earlier[mine] if mine.any() else earlier
    return "" if found.empty else str(found["run"].iloc[-1])
