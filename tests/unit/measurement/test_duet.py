"""Two sides loaded at the same time, on one processor."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import BuildError, EngineError, MeasurementError
from hybridwatch.measurement import session as session_module
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.measurement.plan import Barrier, PlannedTrial, made_at_once, plan, require_duet
from hybridwatch.measurement.session import Session, SessionRequest
from hybridwatch.records.run import Phase, Sample
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home

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
    first, second = session._trials(pool, both())
    assert pool.retired == [0, 1], "the next block has engines of its own"
    assert (first.index, second.index) == (0, 1)
    assert [one.samples[0].values for one in (first, second)] == [(0.004,), (1.004,)]
    assert first.surroundings is second.surroundings is None


@pytest.mark.parametrize("broken", [0, 1])
def test_a_side_that_fails_leaves_nobody_waiting(session, broken):
    made = session._trials(PretendedBench(broken), both())
    assert made[broken].failure.reason == f"engine of side {broken} did not come up"
    assert made[1 - broken].failure.reason == "the other side of the duet failed"
    assert [one.index for one in session._trials(PretendedBench(), both(1))] == [2, 3]


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
        (["cpu-0.27.1"] * 2, {*DUET, Phase.CONTRACT}, "measured alone; found contract beside it"),
    ],
)
def test_what_cannot_be_a_duet_is_refused(labels, phases, says):
    with pytest.raises(BuildError, match=says):
        require_duet([parse_label(label) for label in labels], phases)
