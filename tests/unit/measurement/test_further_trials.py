"""A session makes further trials where its machine needs them, in turn, after those planned."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.measurement import session as module
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.measurement.session import Session, SessionRequest
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.builders import a_run

PLANNED = 7


class Client:
    """Is ready at once."""

    def make_ready(self):
        """There is nothing to load."""


class ShortPool:
    """Stands in for engines that are always ready."""

    def make_ready(self, _side):
        """There is nothing to start."""

    def client(self, _side):
        return Client()


class Watch:
    """Sees nothing."""

    def __init__(self, *_):
        self.start = self.stop = self.close = lambda: None


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make a session whose machine lacks so many rounds; give sides in order, by phase, and what
    was shown."""
    monkeypatch.setattr(module, "measure", lambda _phase, _trial: TrialResult(()))
    monkeypatch.setattr(module, "Watch", Watch)
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    counts = scenario.trials.model_copy(update={"performance": PLANNED, "host_sync": 2})
    scenario = scenario.model_copy(update={"trials": counts})

    def run(missing, labels=("cpu-0.27.1", "cpu-0.27.1"), **wish):
        shown: list[module.Progress] = []
        sides = [parse_label(label) for label in labels]
        request = SessionRequest(
            scenario, sides, Path("models"), shown.append, missing=missing, **wish
        )
        session = Session(request, tmp_path)
        session._pool = ShortPool()  # type: ignore[assignment]
        session._run = replace(a_run({"ttft": [1.0]}), trials=())
        found: dict[Phase, list[int]] = {phase: [] for phase in Phase}
        for trial in session.make_all().trials:
            if not trial.warmup:
                found[trial.phase].append(trial.side)
        return found, shown

    return run


def test_further_rounds_go_on_in_turn_and_before_the_next_phase(made):
    asked: list[Counter[Phase]] = []

    def missing(run):
        asked.append(Counter(trial.phase for trial in run.trials if not trial.warmup))
        return 3

    sides, shown = made(missing)
    assert sides[Phase.PERFORMANCE] == [0, 1, 1, 0] * 5
    assert sides[Phase.HOST_SYNC] == [0, 1, 1, 0]
    (seen,) = asked
    assert seen[Phase.PERFORMANCE] == 2 * PLANNED, "asked once, when the planned ones are made"
    assert seen[Phase.HOST_SYNC] == 0
    assert [one.text for one in shown if one.lasting] == ["noisy machine: 3 more trials a side"]
    assert shown[-1].done < shown[-1].total, "the total grew with them"


def test_no_round_more_where_none_is_missing(made):
    sides, shown = made(lambda _run: 0)
    assert len(sides[Phase.PERFORMANCE]) == 2 * PLANNED
    assert not [one for one in shown if one.lasting]


def test_one_build_alone_is_compared_with_nothing_and_needs_no_more(made):
    sides, _ = made(lambda _run: 3, labels=("cpu-0.27.1",))
    assert len(sides[Phase.PERFORMANCE]) == PLANNED


def test_nothing_timed_is_added_to_contracts(made):
    sides, _ = made(lambda _run: 3, phases=(Phase.CONTRACT,))
    assert sides[Phase.CONTRACT]
    assert not sides[Phase.PERFORMANCE]
