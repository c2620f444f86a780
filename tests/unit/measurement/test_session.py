"""Sessions: what fails, what is stopped, further trials, and duets."""

import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import BuildError, EngineError, MeasurementError
from hybridwatch.measurement import session as session_module
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.measurement.plan import Barrier, PlannedTrial, made_at_once, plan, require_duet
from hybridwatch.measurement.session import Session
from hybridwatch.measurement.session_request import Progress, SessionRequest
from hybridwatch.records.codec import encode
from hybridwatch.records.fields import LONGEST_LOG, LONGEST_TEXT
from hybridwatch.records.run import Phase, Sample
from hybridwatch.scenarios.load import find, load_scenario
from hybridwatch.system.home import home
from tests.builders import a_run
from tests.shipped import ROOT


class Dying:
    """Stands in for an engine pool whose engine never becomes ready."""

    def __init__(self, error):
        self._error = error

    def make_ready(self, _side):
        raise self._error

    def is_alive(self, _side):
        return False

    def discard(self, _side):
        """There is nothing to give up."""


@pytest.mark.parametrize(
    "error",
    [
        EngineError("e" * 2 * LONGEST_TEXT, "l" * 2 * LONGEST_LOG + "the last line"),
        MeasurementError("e" * 2 * LONGEST_TEXT + "\n" + "l" * 2 * LONGEST_LOG + "the last line"),
    ],
    ids=["engine", "measurement"],
)
def test_failed_trial_with_lines_of_any_length_can_be_kept(tmp_path, error):
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    sides = (parse_label("cpu-0.27.1"),)
    made = Session(SessionRequest(scenario, sides, Path("models"), print), tmp_path)
    made._pool = Dying(error)  # type: ignore[assignment]
    (trial,) = made._trials(made._plan[:1])
    assert trial.failure is not None
    assert trial.failure.log_tail.endswith("the last line"), "what was said last is kept"
    run = a_run({"ttft": [1.0]})
    assert encode(replace(run, trials=(replace(trial, index=0),))).record


class Dead(Dying):
    """Stands in for an engine pool whose engine has died since it was made ready."""

    def make_ready(self, _side):
        """It was there."""

    def running(self, _side):
        raise self._error


def test_where_engine_and_client_both_ended_the_engine_is_the_cause(tmp_path, monkeypatch):
    """lm-eval ends with a traceback of its own when nobody answers any more."""

    def no_answer(*_):
        raise MeasurementError("lm-eval ended with status 1: cannot connect")

    monkeypatch.setattr(session_module, "measure", no_answer)
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    request = SessionRequest(scenario, (parse_label("cpu-0.27.1"),), Path("models"), print)
    made = Session(request, tmp_path)
    pool = Dead(EngineError("engine ended during a trial", "RuntimeError: of its own"))
    made._pool = pool  # type: ignore[assignment]
    (trial,) = made._trials(made._plan[:1])
    assert trial.failure is not None
    assert trial.failure.engine_died
    assert trial.failure.log_tail == "RuntimeError: of its own"
    assert trial.failure.reason == "engine ended during a trial: RuntimeError: of its own"


SESSION = """
import os, signal, sys
from pathlib import Path
from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import EngineError
from hybridwatch.measurement.session import Session
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.system.stopping import stoppable
from hybridwatch.scenarios.load import load_scenario

class StoppedPool:
    def make_ready(self, side):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise EngineError("no answer from the engine") from None

    def is_alive(self, side): return False
    def discard(self, side): pass

root = Path("scenarios")
scenario = load_scenario(root / "smoke" / "padded-graph-rows.toml", root)
sides = [parse_label("cpu-0.27.1")]
session = Session(SessionRequest(scenario, sides, Path("models"), print), Path(sys.argv[1]))
try:
    with stoppable():
        session._pool = StoppedPool()
        print(session._trials(session._plan[:1])[0].failure.reason)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_trial_whose_engine_was_ended_by_request_is_no_failed_trial(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "no answer" not in done.stdout


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
    monkeypatch.setattr(session_module, "measure", lambda _phase, _trial: TrialResult(()))
    monkeypatch.setattr(session_module, "Watch", Watch)
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    counts = scenario.trials.model_copy(update={"performance": PLANNED, "host_sync": 2})
    scenario = scenario.model_copy(update={"trials": counts})

    def run(missing, labels=("cpu-0.27.1", "cpu-0.27.1"), **wish):
        shown: list[Progress] = []
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


class Renewed(ShortPool):
    """Counts how often its engines were new."""

    starts = 1

    def renew(self):
        self.starts += 1


def spread_session(tmp_path, monkeypatch, pool, **wish):
    """A session of 7 blocks on three starts; each trial's value is which engines gave it."""
    monkeypatch.setattr(session_module, "Watch", Watch)
    seen = lambda _phase, _trial: TrialResult((Sample("ttft", (float(pool.starts),)),))  # noqa: E731
    monkeypatch.setattr(session_module, "measure", seen)
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    counts = {"performance": PLANNED, "host_sync": 2, "starts": 3}
    trials = scenario.trials.model_copy(update=counts)
    request = SessionRequest(
        scenario.model_copy(update={"trials": trials}),
        [parse_label("cpu-0.27.1"), parse_label("cpu-0.28.0")],
        Path("models"),
        lambda _: None,
        **wish,
    )
    session = Session(request, tmp_path)
    session._pool = pool
    session._run = replace(
        a_run({"ttft": [1.0]}, {"ttft": [1.0]}), trials=request.made, second_look=None
    )
    return session


def test_each_start_has_engines_of_its_own_and_its_trials_say_which(tmp_path, monkeypatch):
    session = spread_session(tmp_path, monkeypatch, Renewed(), again=lambda _: "slower")
    run = session.make_all()
    timed = [one for one in run.trials if one.phase is Phase.PERFORMANCE]
    assert Counter(one.start for one in timed) == {0: 6, 1: 6, 2: 8, 3: 6, 4: 6, 5: 8}
    for one in timed:
        assert one.samples[0].values == (one.start + 1.0,), "new engines for each start, and once"
    others = [one for one in run.trials if one.phase is not Phase.PERFORMANCE]
    assert {one.start for one in others} == {None}
    assert {one.samples[0].values for one in others} == {(1.0,), (3.0,), (6.0,)}
    first = run.trials[run.second_look]
    assert (first.start, first.warmup) == (3, True)


def test_a_resumed_session_makes_no_start_again_that_is_whole(tmp_path, monkeypatch):
    whole = spread_session(tmp_path, monkeypatch, Renewed()).make_all()
    numbers = [one.index for one in whole.trials if one.start == 1 and not one.warmup]
    kept = tuple(one for one in whole.trials if one.index < numbers[2])
    pool = Renewed()
    session = spread_session(tmp_path, monkeypatch, pool, earlier=replace(whole, trials=kept))
    run = session.make_all()
    timed = [one for one in run.trials if one.phase is Phase.PERFORMANCE and not one.warmup]
    assert Counter(one.start for one in timed) == {0: 4, 1: 4, 2: 6}
    assert pool.starts == 2, "the engines at hand, then those of the last start"


@pytest.mark.parametrize(
    ("starts", "second", "engines"),
    [(3, "cpu-0.27.1", 2), (1, "cpu-0.27.1", 1), (3, "cpu-0.27.1~padded-rows-prefilling", 1)],
)
def test_an_a_a_of_several_starts_has_an_engine_a_side(tmp_path, starts, second, engines):
    (scenario,) = find(home() / "scenarios", ["smoke/padded-graph-rows"])
    trials = scenario.trials.model_copy(update={"starts": starts})
    sides = [parse_label("cpu-0.27.1"), parse_label(second)]
    models = home() / "models"
    request = SessionRequest(
        scenario.model_copy(update={"trials": trials}), sides, models, lambda _: None
    )
    with Session(request, tmp_path) as session:
        assert len(session._pool._slots) == engines
        session._pool.renew()
        assert {slot.launch.hash_seed for slot in session._pool._slots.values()} == {None}


BUILD = parse_label("cpu-0.27.1")
DUET = {Phase.DUET}


class PretendedBench:
    """Has an engine a side; that of the side ``broken`` does not come up."""

    def __init__(self, broken=None):
        self.broken = broken
        self.retired = []

    def make_ready(self, side):
        if side == self.broken:
            raise EngineError(f"engine of side {side} did not come up")

    def is_alive(self, side):
        return side != self.broken

    def discard(self, side):
        pass

    def retire(self, side):
        self.retired.append(side)


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session of one duet, whose trials only meet."""

    def measured(_phase, trial):
        trial.wait_for_other()
        return TrialResult((Sample("duet_cpu_time", (0.004 + trial.side,)),))

    monkeypatch.setattr(session_module, "_measured", measured)
    root = home() / "scenarios"
    scenario = load_scenario(root / "smoke" / "padded-graph-rows.toml", root)
    request = SessionRequest(scenario, (BUILD, BUILD), home() / "models", lambda _: None, DUET)
    return Session(request, tmp_path)


def both(number=0):
    return [PlannedTrial(Phase.DUET, side, number=number) for side in (0, 1)]


# Here and below a fault lets sides wait for each other until the limit of the test.
def test_both_sides_are_loaded_at_the_same_time(session):
    pool = PretendedBench()
    session._pool = pool
    first, second = session._trials(both())
    assert pool.retired == [0, 1], "the next block has engines of its own"
    assert (first.index, second.index) == (0, 1)
    assert [one.samples[0].values for one in (first, second)] == [(0.004,), (1.004,)]
    assert first.surroundings is second.surroundings is None


@pytest.mark.parametrize("broken", [0, 1])
def test_a_side_that_fails_leaves_nobody_waiting(session, broken):
    session._pool = PretendedBench(broken)
    made = session._trials(both())
    assert made[broken].failure.reason == f"engine of side {broken} did not come up"
    assert made[1 - broken].failure.reason == "the other side of the duet failed"
    session._pool = PretendedBench()
    assert [one.index for one in session._trials(both(1))] == [2, 3]


def test_sides_meet_as_often_as_they_like() -> None:
    barrier, story = Barrier(2), []

    def go(side: int) -> None:
        for turn in range(20):
            barrier.wait()
            story.append((turn, side))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(go, (0, 1)))
    # Nobody is ahead by more than the round that the other is just leaving.
    turns = [turn for turn, _ in story]
    assert all(later >= earlier - 1 for earlier, later in pairwise(turns))
    assert sorted(story) == [(turn, side) for turn in range(20) for side in (0, 1)]


def test_who_leaves_after_some_meetings_leaves_nobody_waiting() -> None:
    barrier = Barrier(2)

    def leave_early() -> None:
        barrier.wait()
        barrier.leave()

    with ThreadPoolExecutor(2) as threads:
        left = threads.submit(leave_early)
        barrier.wait()
        left.result()
        with pytest.raises(MeasurementError, match="the other side of the duet failed"):
            barrier.wait()


def test_the_plan_pairs_each_trial_of_a_duet_and_no_other(session):
    counts = session.request.scenario.trials
    whole = plan(counts, 2, {Phase.CONTRACT, Phase.DUET})
    groups = list(made_at_once(whole))
    assert [one for group in groups for one in group] == list(whole)
    contracts = [group for group in groups if group[0].phase is Phase.CONTRACT]
    duets = [group for group in groups if group[0].phase is Phase.DUET]
    assert {len(group) for group in contracts} == {1}
    assert {tuple(sorted(one.side for one in group)) for group in duets} == {(0, 1)}
    assert len(duets) == counts.performance
    # Who begins changes from block to block.
    assert {group[0].side for group in duets if not group[0].warmup} == {0, 1}


def test_each_side_has_an_engine_of_its_own(session):
    with session:
        assert session._pool.client(0) is not session._pool.client(1)


def drawn(pool):
    """Of what the hashes of each side are drawn."""
    slots = pool._slots.values()
    return [slot.launch.variables()["PYTHONHASHSEED"] for slot in slots]


def test_both_engines_of_a_block_draw_the_same_hashes_and_the_next_block_others(session):
    with session:
        pool = session._pool
        first = drawn(pool)
        for side in (0, 1):
            pool.retire(side)
        assert first[0] == first[1]
        assert drawn(pool)[0] == drawn(pool)[1] != first[0]


def test_first_blocks_of_two_sessions_draw_other_hashes(session, tmp_path):
    with session, Session(session.request, tmp_path) as again:
        assert drawn(session._pool) != drawn(again._pool)


def test_a_session_is_on_one_processor_and_what_it_starts_as_well(session):
    allowed = os.sched_getaffinity(0)
    ask = [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"]
    with session:
        assert subprocess.check_output(ask, text=True).strip() == str({max(allowed)})
    assert os.sched_getaffinity(0) == allowed
    # The testbed is the machine, not the share of it that the engines had.
    assert session._testbed.cores == len(allowed)


@pytest.mark.parametrize(
    ("labels", "phases", "says"),
    [
        (["cpu-0.27.1"], DUET, "expected two builds that compute on a CPU, found cpu-0.27.1"),
        (["cpu-0.27.1", "cuda-0.27.1"], DUET, r"found cpu-0.27.1 \(cpu\), cuda-0.27.1 \(cuda\)"),
        (["cpu-0.27.1"] * 2, {*DUET, Phase.CONTRACT}, "measured alone; found contract next to it"),
    ],
)
def test_what_cannot_be_a_duet_is_refused(labels, phases, says):
    with pytest.raises(BuildError, match=says):
        require_duet([parse_label(label) for label in labels], phases)
