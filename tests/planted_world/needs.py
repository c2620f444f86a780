"""What a reader needs to be told of each kind of fault, and how what was told falls short of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hybridwatch.history.entry import Entry
from tests.planted_world import questions
from tests.planted_world.plan import Fault, Kind
from tests.planted_world.questions import NIGHTLY, Change, Place
from tests.planted_world.replay import Replay
from tests.planted_world.told import Told, places_in

SOON: Final = 7
"""Nights within which a person wants to hear of a step."""
_AT_ONCE: Final = 1
"""Nights within which a dead engine, a broken contract and a changed machine are to be told."""
_MOST_COMMITS: Final = 20
"""Commits that a person looks through, some four nights of them; more blame nobody."""


class Short(StrEnum):
    """How what was told may fall short of what a reader needs."""

    NEVER = "never told"
    LATE = "told late"
    SEVERAL = "more than one alert for one cause"
    NOT_JOINED = "no alert names all testbeds"
    NO_COMMITS = "no commits are named"
    MANY_COMMITS = "more commits are named than a person looks through"
    WRONG_COMMITS = "the culprit is not among the commits"
    BLAMED = "commits of one night are blamed that did nothing"
    NO_STEP = "the nightlies' line has no step on that night"
    STEP_ELSEWHERE = "a step lies on other nights"
    CALLED_STEP = "called a step"
    CALLED_DRIFT = "called a drift"
    NOT_A_DRIFT = "not called a drift"
    NOT_BETTER = "the overview did not call it better"
    ENDED_EARLY = "no alert is open at the end"
    NOT_OVER = "an alert is still open after it was over"
    LEFT_OPEN = "an alert that nobody can act on is open at the end"
    NO_MACHINE = "the overview does not say that the machine changed"
    NO_KERNEL = "the page does not name the new kernel"
    NO_MODES = "the scenario's page does not say that there are two modes"
    NOT_AWAY = "no message says that the testbed is away"
    NOT_BACK = "no message says that the testbed is back"
    NO_MARK = "the scenario's page does not mark it"


@dataclass(frozen=True, slots=True)
class Case:
    """A planted fault, and everything that was said which may be about it."""

    fault: Fault
    whole: Replay
    told: tuple[Told, ...]
    mine: tuple[Told, ...]
    changes: tuple[Change, ...]

    @property
    def night(self) -> int | None:
        """The night after which it was first told, in whichever way such a fault is."""
        match self.fault.kind:
            case Kind.GAP:
                nights = [night for night, is_end in _gap_news(self) if not is_end]
            case Kind.IMPROVEMENT:
                nights = list(_better_nights(self))
            case _:
                nights = [one.morning.night for one in self.mine]
        return min(nights, default=None)

    @property
    def first(self) -> Told | None:
        """The first alert about it."""
        return min(self.mine, key=lambda one: one.morning.night, default=None)

    def here(self) -> Iterator[Told]:
        """Alerts of any kind where the fault is."""
        for one in self.told:
            if any(self.fault.covers(*place) for place in one.places):
                yield one


def _lasting(case: Case) -> Iterator[Short]:
    """A step: told soon, once, as a step, with the culprit, and open as long as it is there."""
    yield from _one_alert(case, SOON)
    yield from _blames(case)
    yield from _as_step(case)
    if not any(one.open_at_end for one in case.mine):
        yield Short.ENDED_EARLY


def _common(case: Case) -> Iterator[Short]:
    yield from _lasting(case)
    together, first = set(places_in(case.fault)), case.fault.first
    keys = {questions.key_of(one.alert) for one in case.mine}
    soon = case.whole.mornings[first : first + _AT_ONCE + 1]
    alerts = (alert for morning in soon for alert in morning.alerts)
    mine = (alert for alert in alerts if questions.key_of(alert) in keys)
    if not any(together <= questions.places_of(alert) for alert in mine):
        yield Short.NOT_JOINED


def _passing(case: Case) -> Iterator[Short]:
    """A fault that ends: told at once, once, with the culprit, and over when it is over."""
    yield from _one_alert(case, _AT_ONCE)
    yield from _blames(case)
    if any(one.open_until > case.fault.last + _AT_ONCE for one in case.mine):
        yield Short.NOT_OVER


def _once(case: Case) -> Iterator[Short]:
    """Red once: an alert is fair, but it closes itself when the next night is good."""
    if any(one.open_until > case.fault.last + _AT_ONCE for one in case.mine):
        yield Short.NOT_OVER


def _one_alert(case: Case, within: int) -> Iterator[Short]:
    first = case.first
    if first is None:
        yield Short.NEVER
        return
    if first.morning.night > case.fault.first + within:
        yield Short.LATE
    if len({questions.key_of(one.alert) for one in case.mine}) > 1:
        yield Short.SEVERAL


def _blames(case: Case) -> Iterator[Short]:
    first = case.first
    if first is None or not case.fault.commit:
        return
    if first.commits is None:
        yield Short.NO_COMMITS
    elif case.fault.commit not in first.commits:
        yield Short.WRONG_COMMITS
    elif len(first.commits) > _MOST_COMMITS:
        yield Short.MANY_COMMITS


def _as_step(case: Case) -> Iterator[Short]:
    steps = [change for change in case.changes if not change.is_drift]
    if not any(case.fault.first in change.nights for change in steps):
        yield Short.NO_STEP
    elsewhere = [change for change in steps if case.fault.first not in change.nights]
    if any(_is_near(change, case) for change in elsewhere):
        yield Short.STEP_ELSEWHERE
    if any(change.is_drift for change in case.changes):
        yield Short.CALLED_DRIFT


def _is_near(change: Change, case: Case) -> bool:
    return any(abs(night - case.fault.first) <= SOON for night in change.nights)


def _improvement(case: Case) -> Iterator[Short]:
    first = case.fault.first
    soon = case.whole.mornings[first : first + SOON + 1]
    if not any(set(places_in(case.fault)) <= questions.improved_places(one) for one in soon):
        yield Short.NOT_BETTER
    if list(_as_step(case)):
        yield Short.NO_STEP


def _better_nights(case: Case) -> Iterator[int]:
    """The nights soon after the improvement on which the overview calls it so."""
    first = case.fault.first
    for morning in case.whole.mornings[first : first + SOON + 1]:
        if set(places_in(case.fault)) <= questions.improved_places(morning):
            yield morning.night


def _drift(case: Case) -> Iterator[Short]:
    """A drift: one alert while it grows, called a drift, and no small set of commits blamed."""
    yield from _one_alert(case, case.fault.last - case.fault.first)
    if not any(change.is_drift for change in case.changes):
        yield Short.NOT_A_DRIFT
    if any(not change.is_drift for change in case.changes):
        yield Short.CALLED_STEP
    if any(one.commits is not None and len(one.commits) <= _MOST_COMMITS for one in case.mine):
        yield Short.BLAMED


def _machine(case: Case) -> Iterator[Short]:
    """A machine that changed: said on the overview at once, and no commit blamed for it."""
    after = case.whole.mornings[min(case.fault.first + _AT_ONCE, case.whole.end.night)]
    text = questions.overview_text(after)
    if "machine changed" not in text:
        yield Short.NO_MACHINE
    if _testbed(case, "kernel") not in text:
        yield Short.NO_KERNEL
    first = case.whole.world.commits[case.fault.first][-1]
    place = next(place for place in places_in(case.fault) if not _others_at(place, case))
    blames = questions.names_range_to(first, questions.scenario_text(case.whole.end, place))
    if blames or any(one.commits is not None for one in case.mine):
        yield Short.BLAMED


def _others_at(place: Place, case: Case) -> list[Fault]:
    """What else is planted there."""
    faults = case.whole.world.faults
    return [fault for fault in faults if fault is not case.fault and fault.covers(*place)]


def _facts(case: Case) -> Iterator[Short]:
    """Facts that changed without effect: a small mark where the scenario is drawn, no more."""
    place = places_in(case.fault)[0]
    if _testbed(case, "kernel") not in questions.scenario_text(case.whole.end, place):
        yield Short.NO_KERNEL


def _testbed(case: Case, fact: str) -> str:
    """What a fact of the testbed is at the end, in lower case."""
    name = case.fault.testbeds[0]
    runs = case.whole.end.source.index.runs()
    newest = runs[runs["testbed"] == name]["record"].iloc[-1]
    entry = case.whole.end.source.read(case.whole.end.source.results / newest)
    assert isinstance(entry, Entry)
    return str(getattr(entry.run.testbed, fact)).lower()


def _modes(case: Case) -> Iterator[Short]:
    """Two modes: said in a sentence where the scenario is drawn, and no alert left open."""
    text = questions.scenario_text(case.whole.end, places_in(case.fault)[0])
    if "two modes" not in text and "two levels" not in text:
        yield Short.NO_MODES
    yield from _quiet(case)


def _quiet(case: Case) -> Iterator[Short]:
    """Nothing on duty about it: whatever was red by chance has closed itself."""
    if any(one.open_at_end for one in case.here()):
        yield Short.LEFT_OPEN


def _gap(case: Case) -> Iterator[Short]:
    """A testbed that was away: told, told to be back, and a hole in what is drawn."""
    fault, news = case.fault, list(_gap_news(case))
    if not any(fault.first <= night <= fault.first + SOON for night, is_end in news if not is_end):
        yield Short.NOT_AWAY
    if not any(fault.last < night <= fault.last + SOON for night, is_end in news if is_end):
        yield Short.NOT_BACK
    place = places_in(fault)[0]
    text = questions.scenario_text(case.whole.end, place)
    if "not measured" not in text and "gap" not in text:
        yield Short.NO_MARK


def _gap_news(case: Case) -> Iterator[tuple[int, bool]]:
    """The nights after which a message said that the testbed is away, or that it is back."""
    for morning in case.whole.mornings:
        for message in morning.messages:
            if questions.is_gap(message) and message.content.testbed in case.fault.testbeds:
                yield morning.night, message.news.is_end


def _load(case: Case) -> Iterator[Short]:
    """Another load: another series, and what is drawn says why one ends."""
    changes = [
        change
        for place in places_in(case.fault)
        for build in ("cpu-", "cuda-", NIGHTLY)
        for change in questions.changes_at(
            case.whole.end, place, ("ttft", "tpot"), build, case.whole.world
        )
    ]
    if any(change.effect > 1 and not change.is_drift for change in changes):
        yield Short.CALLED_STEP
    texts = (questions.scenario_text(case.whole.end, place) for place in places_in(case.fault))
    if not all("new series since" in text and ", digest " in text for text in texts):
        yield Short.NO_MARK


def _release(case: Case) -> Iterator[Short]:
    """Two fixed builds: a finding about a release, which is nobody's to mend tonight."""
    pair = [one for one in case.here() if one.is_of_releases and one.opened == case.fault.first]
    if any(one.open_at_end for one in pair):
        yield Short.LEFT_OPEN


SHORT_OF: Final[Mapping[Kind, Callable[[Case], Iterator[Short]]]] = {
    Kind.STEP: _lasting,
    Kind.COMMON_STEP: _common,
    Kind.IMPROVEMENT: _improvement,
    Kind.ANSWERS: _lasting,
    Kind.DEAD: _passing,
    Kind.DRIFT: _drift,
    Kind.MACHINE: _machine,
    Kind.FACTS: _facts,
    Kind.START_MODES: _modes,
    Kind.TRIAL_MODES: _modes,
    Kind.START_LUCK: _quiet,
    Kind.GAP: _gap,
    Kind.LOAD: _load,
    Kind.RELEASE: _release,
    Kind.CONTRACT: _passing,
    Kind.ONCE: _once,
}
"""How each kind falls short of what a reader needs."""
