"""What the product is asked: one function for each question, and nothing about what is planted.

Whoever changes how the product answers adapts these, and neither the truth nor the score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hybridwatch.analysis.alerts import AlertGroup, Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.change_point import ChangePoint, Drift, HistoryState
from hybridwatch.analysis.change_point.examine import ENOUGH_POINTS
from hybridwatch.analysis.policy import STRICT, Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.history.lines import Line, compute_medians
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.history.overview_rows import GridRow, build_grid, current, since_when, verdict_rows
from hybridwatch.history.runs import latest_comparisons
from hybridwatch.integrations.notify.news import Message
from hybridwatch.metrics import find_metric
from hybridwatch.pages.address import address
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.pages.screens.histories import changes_on
from hybridwatch.pages.screens.suspects import list_suspects
from tests.dashboard.parity import words_of
from tests.planted_world.plan import World
from tests.planted_world.replay import Morning, Replay

Place = tuple[str, str]
"""A scenario and a testbed."""

NIGHTLY: Final = "nightly"
_ALL_NIGHTS: Final = 1000
_COLUMNS: Final = 16
_SHA: Final = 7
_TAIL: Final = "p99"
"""Scatters too much to be asked where it changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the product sees in a line of builds.

    Attributes:
        nights: Every night that may be the first on the new level.
        is_drift: Whether it is called a slow one.
        effect: New level against old, or how far it wandered.
    """

    metric: str
    nights: frozenset[int]
    is_drift: bool
    effect: float


def places_of(alert: AlertGroup) -> frozenset[Place]:
    """Where an alert says that it shows."""
    return frozenset((one.subject.scenario, one.subject.testbed) for one in alert.members)


def area_of(alert: AlertGroup) -> Area:
    """What an alert says is affected."""
    return alert.lead.subject.area


def builds_of(alert: AlertGroup) -> tuple[str, str]:
    """Baseline and contender that an alert is about."""
    return alert.lead.subject.baseline, alert.lead.subject.contender


def key_of(alert: AlertGroup) -> str:
    """A name that an alert keeps from night to night."""
    return alert.key


def opening_of(alert: AlertGroup) -> tuple[str, str]:
    """Its name, and the run that opened it last: an alert that ended may open again."""
    return key_of(alert), alert.opened_by.run_id


def is_open(alert: AlertGroup) -> bool:
    """Whether somebody on duty finds it in the list of what is to be done."""
    return alert.status is Status.OPEN


def opened_on(alert: AlertGroup, world: World) -> int:
    """The night whose run opened it last."""
    return world.night_of(alert.opened_by.started_at)


def is_gap(message: Message) -> bool:
    """Whether a message is about a testbed that does not measure."""
    return message.content.area == "gap"


def commits_of(alert: AlertGroup, source: ScreenSource, world: World) -> tuple[str, ...] | None:
    """The commits among which an alert's page says that the cause is; ``None`` if it names none."""
    suspects = list_suspects(alert.lead, source)
    named = suspects.culprits.commits if suspects else None
    return None if named is None else _between(named.old, named.new, world)


def _between(old: str, new: str, world: World) -> tuple[str, ...] | None:
    places = [
        next((at for at, commit in enumerate(world.order) if commit.startswith(end)), None)
        for end in (old, new)
    ]
    if places[1] is None:
        return None
    first = 0 if places[0] is None else places[0] + 1  # a release is older than every nightly
    return world.order[first : places[1] + 1]


def lines_at(morning: Morning, place: Place, metric: str, build: str) -> Iterator[Line]:
    """The lines of a series that the product draws for builds whose names begin so."""
    scenario, testbed = place
    index = morning.source.index
    found, machines = index.levels(scenario, testbed), changes_on(testbed, index)
    for (name, statistic), levels in found.items():
        if name != metric or statistic == _TAIL:
            continue
        known = find_metric(metric)
        for (line, _), mine in levels.groupby(["line", "digest"], sort=False):
            if str(line).startswith(build) and len(mine) >= ENOUGH_POINTS:
                yield from compute_medians(mine, known, str(line), _ALL_NIGHTS, False, machines)


def changes_at(
    morning: Morning, place: Place, metrics: Sequence[str], build: str, world: World
) -> list[Change]:
    """The confirmed changes of a line of builds, and where it drifts."""
    return [
        change
        for metric in metrics
        for line in lines_at(morning, place, metric, build)
        for change in _changes(line, metric, world)
    ]


def _changes(line: Line, metric: str, world: World) -> Iterator[Change]:
    nights = [world.night_of(when.to_pydatetime()) for when in line.levels["started_at"]]
    sure = [point for point in line.history.points if point.state is HistoryState.CONFIRMED]
    every: tuple[ChangePoint | Drift, ...] = (*sure, *line.history.drifts)
    for found in every:
        where = frozenset(nights[found.first : found.last + 1])
        yield Change(metric, where, isinstance(found, Drift), found.effect)


def improved_places(morning: Morning) -> frozenset[Place]:
    """Where the overview's news say that something got better since yesterday."""
    since, index = morning.source.now - timedelta(days=1), morning.source.index
    latest, begun = latest_comparisons(index), since_when(index)
    rows = verdict_rows(latest[latest["verdict"] == Verdict.IMPROVEMENT.value])
    return frozenset((row.scenario, row.testbed) for row in rows if begun[row.question] >= since)


def grid_at(morning: Morning) -> list[GridRow]:
    """The overview's rows."""
    index = morning.source.index
    return build_grid(current(latest_comparisons(index)), index, _COLUMNS)


def overview_text(morning: Morning) -> str:
    """Everything that the overview says, in lower case."""
    return _text(morning.source, "overview")


def scenario_text(morning: Morning, place: Place) -> str:
    """Everything that the page of a scenario says of a testbed, in lower case."""
    scenario, testbed = place
    return _text(morning.source, "scenario", scenario=scenario, testbed=testbed, runs="200")


def names_range_to(commit: str, text: str) -> bool:
    """Whether a page names a range of commits that ends with this one."""
    return f"...{commit[:_SHA]}" in text


def _text(source: ScreenSource, screen: str, **parameters: str) -> str:
    return "\n".join(words_of(open_view(source, address(screen, **parameters)))).lower()


def named_by_gate(replay: Replay) -> list[tuple[Place, Area]]:
    """Where the gate stops on the last morning since something got worse, and what."""
    findings = findings_for((), replay.end.source.results, STRICT, now=replay.end.source.now)
    return [
        ((found.report.scenario.id, found.report.contender.testbed.id), found.cause.area)
        for found in findings.causes
        if found.cause.action is Action.BLOCK
    ]
