"""Faults and mutants planted on purpose: what they do, and that they come out without a trace."""

import tracemalloc
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine.model_runner import work_of_steps
from hybridwatch_engine.mutants.board import MutantBoard, MutantHeader
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.planted import (
    EXTRA,
    FAULTS,
    SMALL_PERCENTS,
    Drag,
    Fault,
    Planter,
    _all_continue,
    busy_step,
    halved_cache,
    host_read,
    leaked_memory,
    slow_step,
)
from hybridwatch_engine.scheduler_side import _answered_here_too
from hybridwatch_engine_lab.mutants import cost

from hybridwatch.engines.builds import FAULTS as LABEL_FAULTS
from hybridwatch.scenarios.fixes import FIXES
from hybridwatch_lab.in_engine import MUTANTS
from tests.unit.plugin.modules import stand_in


def a_header(name: str = "one", **changes: Any) -> MutantHeader:
    keys: dict[str, Any] = {
        "name": name,
        "file": f"first.toml: mutant.{name}",
        "folder": MUTANTS,
        "half": "first",
        "mechanism": "speed",
        "target": ("fine:Rows.move",),
        "by": "cost.twice",
        "resembles": "made up",
        "what": "Moves twice.",
    }
    return MutantHeader(**{**keys, **changes})


@pytest.fixture
def rows(monkeypatch):
    """A package vllm with one class, whose rows count their moves."""

    class Rows:
        moves = 0

        def move(self) -> int:
            self.moves += 1
            return self.moves

    stand_in(monkeypatch, "vllm.fine", Rows=Rows)
    return Rows


def a_board(*headers: MutantHeader) -> MutantBoard:
    return MutantBoard({header.name: header for header in headers}, "worker")


def test_a_mutant_acts_while_it_is_on_and_is_out_after(rows):
    original, board = rows.move, a_board(a_header())
    assert board.switch("one") == {"mutant": "one"}
    assert rows().move() == 2
    assert board.counts() == {"reached": 1, "changed": 1}
    assert board.switch(None) == {"mutant": None}
    assert rows.move is original
    assert board.counts() == {"reached": 0, "changed": 0}


def test_another_mutant_takes_the_place_of_the_first(rows):
    slower = a_header("two", by="cost.slower", parameters={"share": 0.0})
    board = a_board(a_header(), slower)
    board.switch("one")
    board.switch("two")
    assert rows().move() == 1
    assert board.counts() == {"reached": 1, "changed": 1}
    board.switch(None)


@pytest.mark.parametrize("target", ["fine:Rows.gone", "fine:Gone.move", "gone:Rows.move"])
def test_a_target_that_this_release_lacks_is_refused_and_nothing_is_on(rows, target):
    original, board = rows.move, a_board(a_header(target=(target,)))
    error = board.switch("one")["error"]
    assert error.startswith(
        f"first.toml: mutant.one.target: expected a function of this vLLM, found {target}"
    )
    assert rows.move is original


def test_an_unknown_mutant_is_refused_with_the_known_ones(rows):
    assert a_board(a_header()).switch("wat") == {
        "error": "no mutant 'wat' to switch on; known: one"
    }


def test_a_mutant_of_the_scheduler_does_nothing_in_a_worker(rows):
    original, board = rows.move, a_board(a_header(process="scheduler"))
    assert board.switch("one") == {"mutant": "one"}
    assert rows.move is original


def test_the_scheduler_answers_as_one_more_worker():
    call = _answered_here_too(lambda *_: [{"mutant": None}])
    assert len(call(SimpleNamespace(), "hybridwatch_mutate", args=(None,))) == 2
    assert call(SimpleNamespace(), "hybridwatch_identity") == [{"mutant": None}]


def test_a_wrapper_hands_out_what_the_original_gives():
    tally = Tally()
    assert cost.slower(lambda: 7, tally, share=0.0)() == 7
    assert tally.reached == 1


class Time:
    """A clock that only work and sleep move on."""

    def __init__(self):
        self.now = 128.0  # with all that is added, exact in binary
        self.slept = []
        self.late = 0.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds + self.late

    def work(self, seconds):
        self.now += seconds
        return seconds


@pytest.fixture
def time():
    return Time()


def drag(time, settle=lambda: None, extra=EXTRA):
    return Drag(settle, extra, time.clock, time.sleep)


def test_a_step_sleeps_a_quarter_of_what_it_took(time):
    step = drag(time).slowed(time.work)
    assert [step(4.0), step(8.0)] == [4.0, 8.0]
    assert time.slept == [1.0, 2.0]


@pytest.mark.parametrize("percent", SMALL_PERCENTS)
def test_smaller_faults_sleep_their_percent_of_what_a_step_took(time, percent):
    drag(time, extra=percent / 100).slowed(time.work)(100.0)
    assert time.slept == [percent]
    assert f"{percent} %" in FAULTS[f"slow-step-{percent}"].how


def test_sleeps_that_last_too_long_are_made_up_for(time):
    step, begin, time.late = drag(time).slowed(time.work), time.now, 1.5
    for _ in range(3):
        step(4.0)
    # Each step owes 1 s: 2.5 s after the first, so none after the second, and half after the third.
    assert time.slept == [1.0, 0.5]
    time.late = 0.0
    for _ in range(8):
        step(4.0)
    assert time.now - begin == 11 * 5.0


def test_a_busy_step_works_its_share_of_what_its_thread_worked(monkeypatch, runners):
    clock = Time()

    def look():
        clock.now += 0.125  # looking is work, too: so the busy loop comes to its end
        return clock.now

    monkeypatch.setattr("hybridwatch_engine.planted.time.thread_time", look)
    patches = busy_step(0.25)
    monkeypatch.setattr(runners.classes[0], "execute_model", lambda _, seconds: clock.work(seconds))
    patches.install()
    begin = clock.now
    assert runners.classes[0]().execute_model(100.0) == 100.0
    patches.remove()
    assert clock.now - begin == pytest.approx(125.0, abs=1.0)


def test_so_it_gives_a_fifth_less_throughput():
    throughput = 1 / (1 + EXTRA)
    assert throughput == pytest.approx(1 - 0.20)


def test_the_device_is_waited_for_before_the_time_is_taken(time):
    drag(time, lambda: time.work(6.0)).slowed(time.work)(2.0)
    assert time.slept == [2.0]


def test_a_call_within_a_call_is_not_slowed_twice(time):
    """A dummy run of runner V2 executes the model; both are wrapped."""
    ours = drag(time)
    inner = ours.slowed(time.work)
    ours.slowed(lambda: inner(4.0))()
    assert time.slept == [1.0]
    inner(8.0)
    assert time.slept == [1.0, 2.0]


def test_a_step_that_fails_fails_as_ever_and_the_next_is_slow_again(time):
    def broken():
        raise RuntimeError("out of slots")

    ours = drag(time)
    with pytest.raises(RuntimeError, match="out of slots"):
        ours.slowed(broken)()
    assert time.slept == []
    ours.slowed(time.work)(4.0)
    assert time.slept == [1.0]


@pytest.fixture
def runners(monkeypatch):
    """vLLM's two model runners and its torch, as far as they are touched."""
    names = ("execute_model", "sample_tokens", "_dummy_run")
    made = {}
    for place in ("gpu.model_runner", "gpu_model_runner"):
        made[place] = type("GPUModelRunner", (), {name: lambda _, x: x for name in names})
        stand_in(monkeypatch, f"vllm.v1.worker.{place}", GPUModelRunner=made[place])
    waits = []
    accelerator = SimpleNamespace(is_available=lambda: True, synchronize=lambda: waits.append(True))
    torch = stand_in(monkeypatch, "torch", accelerator=accelerator)
    return SimpleNamespace(classes=list(made.values()), torch=torch, waits=waits)


def test_it_goes_into_both_runners_and_out_without_a_trace(runners):
    before = [dict(vars(runner)) for runner in runners.classes]
    patches = slow_step()
    patches.install()
    touched = [
        (runner, name)
        for runner, old in zip(runners.classes, before, strict=True)
        for name in old
        if vars(runner)[name] is not old[name]
    ]
    assert set(touched) == set(work_of_steps())
    assert len(touched) == 6
    assert [runner().execute_model(7) for runner in runners.classes] == [7, 7]
    patches.remove()
    assert [dict(vars(runner)) for runner in runners.classes] == before


@pytest.mark.parametrize(("there", "waits"), [(True, 1), (False, 0)])
def test_a_device_is_waited_for_where_there_is_one(runners, there, waits):
    runners.torch.accelerator.is_available = lambda: there
    patches = slow_step()
    patches.install()
    runners.classes[0]().sample_tokens(1)
    patches.remove()
    assert len(runners.waits) == waits


def test_the_host_reads_one_number_of_the_device_before_each_step_with_work(runners):
    reads, places = [], []
    number = SimpleNamespace(item=lambda: reads.append(True))

    def zeros(shape, *, device):
        places.append((shape, device))
        return number

    runners.torch.zeros = zeros
    runner = runners.classes[1]
    runner.device = "cuda:0"
    runner.execute_model = lambda *_, **__: len(reads)
    patches = host_read()
    patches.install()
    work, idle = (SimpleNamespace(total_num_scheduled_tokens=tokens) for tokens in (8, 0))
    step = runner().execute_model
    assert [step(work), step(idle), step(work), step(work, dummy_run=True)] == [1, 1, 2, 2]
    assert places == [((), "cuda:0")]
    patches.remove()
    assert runner().execute_model(work) == 2


def test_every_request_that_begins_leaves_something_and_no_dummy_run_does(runners):
    runner = runners.classes[0]
    runner.execute_model = lambda *_, **__: None
    patches = leaked_memory(2**16)
    patches.install()
    work = SimpleNamespace(total_num_scheduled_tokens=8, scheduled_new_reqs=[1, 2])
    tracemalloc.start()
    try:
        runner().execute_model(work)
        runner().execute_model(work, dummy_run=True)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    patches.remove()
    assert 2 * 2**16 <= held < 3 * 2**16


def test_half_of_the_blocks_are_not_free(monkeypatch):
    class BlockPool:
        num_gpu_blocks = 48

        def __init__(self, free):
            self.free = free

        def get_num_free_blocks(self):
            return self.free

    stand_in(monkeypatch, "vllm.v1.core.block_pool", BlockPool=BlockPool)
    patches = halved_cache()
    patches.install()
    assert [BlockPool(free).get_num_free_blocks() for free in (47, 24, 3)] == [23, 0, 0]
    patches.remove()
    assert BlockPool(47).get_num_free_blocks() == 47


class Engine:
    answer = "fast"
    other = 1


def fault(name, replacement):
    return Fault(*("x",) * 4, lambda: PatchSet(Patch(Engine, name, lambda _: replacement)))


def test_what_is_wished_is_in_and_nothing_else():
    planter = Planter({"slow": fault("answer", "slow"), "odd": fault("other", 2)})
    assert planter.planted == []
    seen = []
    for wanted in (["slow"], ["slow", "odd"], ["odd"], [], []):
        planter.plant(wanted)
        seen.append((sorted(planter.planted), Engine.answer, Engine.other))
    assert seen == [
        (["slow"], "slow", 1),
        (["odd", "slow"], "slow", 2),
        (["odd"], "fast", 2),
        ([], "fast", 1),
        ([], "fast", 1),
    ]


def test_an_engine_in_which_nothing_is_planted_makes_no_patch():
    def make():
        raise AssertionError("made for nothing")

    planter = Planter({"slow": Fault(*("x",) * 4, make)})
    planter.plant([])
    assert planter.planted == []
    with pytest.raises(AssertionError, match="made for nothing"):  # it would have been seen
        planter.plant(["slow"])


def test_an_unknown_fault_is_refused_and_changes_nothing():
    planter = Planter({"slow": fault("answer", "slow")})
    with pytest.raises(ValueError, match="no fault 'slw' to plant; known: slow"):
        planter.plant(["slow", "slw"])
    assert (planter.planted, Engine.answer) == ([], "fast")


def test_harness_and_plugin_know_the_same_faults():
    assert set(LABEL_FAULTS) == set(FAULTS)
    assert not set(FAULTS) & set(FIXES)


@dataclass(frozen=True)
class Metadata:
    """Of a batch of prompts, as far as the fault looks at it."""

    has_initial_states_p: object


class Flags(list[bool]):
    """Stands for a tensor of flags."""

    @property
    def shape(self):
        return len(self)

    def new_ones(self, shape):
        return Flags([True] * shape)


def test_unzeroed_state_says_of_every_prompt_that_it_has_a_state():
    build = _all_continue(lambda _, flags: Metadata(flags))
    flags = Flags([True, False, False])
    assert build(None, flags).has_initial_states_p == [True, True, True]
    assert flags == [True, False, False], "the engine's own flags were written to"


def test_unzeroed_state_leaves_a_batch_without_prompts_alone():
    assert _all_continue(lambda _: Metadata(None))(None) == Metadata(None)
