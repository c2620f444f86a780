"""``hybridwatch run --until-decided`` on engines made of numbers: looks, record, words, status."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest
from click.testing import Result

from hybridwatch.analysis.power import is_decided, level_of, schedule
from hybridwatch.analysis.report import build_report
from hybridwatch.cli import run as verb
from hybridwatch.engines.builds import on_line
from hybridwatch.errors import BuildError, EngineError, MeasurementError, ScenarioError
from hybridwatch.measurement import machine_state, session
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.records.run import InterimAnalyses, Phase, Run, Sample, Trial
from hybridwatch.records.store import list_records, list_verdicts, read_run
from tests.broken_engines import (
    TIMED,
    BadMachine,
    ControlBench,
    LuckyStarts,
    Machine,
    MadeUpBench,
    UnluckyMachine,
)
from tests.checkout import make_checkout
from tests.command_line import run_verb
from tests.pretended_nvml import GIB, Card, pretend

TWO = ("--build", "tiny-1.0", "--build", "tiny-1.0")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one scenario and a build; what costs time takes none."""
    make_checkout(tmp_path, "smoke/padded")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path))
    monkeypatch.setattr(verb, "require_installed", lambda _: None)
    monkeypatch.setattr(session, "EnginePool", MadeUpBench)
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda: (0.01, 0.011, 0.012))
    return tmp_path


@pytest.fixture
def call(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the scenario, or those of a pattern, on a machine of numbers."""

    def run(
        machine: Machine, *words: str, of: str = "smoke/padded", status: int | None = None
    ) -> Result:
        monkeypatch.setattr(session, "measure", machine.measure)
        results = ("--results", str(checkout / "results"))
        return run_verb("run", of, *words, *results, status=status)

    return run


def record_of(checkout: Path) -> Run:
    (record,) = list_records(checkout / "results")
    return read_run(record)


def test_equal_sides_are_decided_before_the_last_look(call, checkout):
    machine = Machine()
    result = call(machine, *TWO, "--until-decided", status=0)
    run = record_of(checkout)
    assert run.looks is not None
    assert run.looks.planned == schedule(7)
    assert 1 <= len(run.looks.made) < 6
    assert is_decided(build_report(run))
    last = f"look {len(run.looks.made)} of 6, {run.looks.made[-1]} trials a side: all 2 timed"
    assert last in result.output


def test_every_look_before_the_last_left_something_open(call, checkout):
    """InterimAnalyses are judged by one level; a run cut back to an earlier look is open still."""
    call(Machine(noise=0.06), *TWO, "--until-decided")
    run = record_of(checkout)
    assert run.looks is not None
    assert len(run.looks.made) > 2
    for number, blocks in enumerate(run.looks.made[:-1], start=1):
        earlier = cut_back(run, blocks, InterimAnalyses(run.looks.planned, run.looks.made[:number]))
        assert not is_decided(build_report(earlier))


def cut_back(run: Run, blocks: int, looks: InterimAnalyses) -> Run:
    counts: dict[tuple[Phase, int], int] = {}
    kept = []
    for trial in run.trials:
        if trial.phase in TIMED and not trial.warmup:
            place = trial.phase, trial.side
            counts[place] = counts.get(place, 0) + 1
            if counts[place] > blocks:
                continue
        kept.append(trial)
    return replace(run, trials=tuple(kept), looks=looks)


def test_a_slower_contender_is_a_regression_at_the_level_of_the_looks(call, checkout):
    result = call(Machine(slower=0.2), *TWO, "--until-decided", "--json", status=0)
    run = record_of(checkout)
    (told,) = json.loads(result.stdout)["runs"]
    assert run.looks is not None
    assert told["report"]["looks"] == {
        "planned": list(run.looks.planned),
        "made": list(run.looks.made),
        "level": level_of(run.looks),
    }
    verdicts = {c["metric"]: c["verdict"] for c in told["report"]["comparisons"]}
    assert verdicts["tpot"] == verdicts["metadata_build_time"] == "regression"


def test_timed_phases_take_turns_and_the_others_are_measured_once_before(call):
    machine = Machine(noise=0.06)
    call(machine, *TWO, "--until-decided")
    timed = [step for step in machine.order if step[0] in TIMED]
    perf, host = Phase.PERFORMANCE, Phase.HOST_SYNC
    warm_ups = [(perf, 0), (perf, 1), (host, 0), (host, 1)]
    first, second = warm_ups, [(perf, 1), (perf, 0), (host, 1), (host, 0)]
    assert timed[:12] == [*warm_ups, *first, *second]

    untimed = [step for step in machine.order if step[0] not in TIMED]
    assert untimed == machine.order[: len(untimed)]
    assert [phase for phase, _ in untimed].count(Phase.ACCURACY) == 2


def test_phases_choose_what_is_measured_and_what_is_expected(call, checkout):
    """Nothing is missing of a phase that nobody wanted."""
    machine = Machine()
    result = call(machine, *TWO, "--phases", "contract", status=0)
    assert {trial.phase for trial in record_of(checkout).trials} == {Phase.CONTRACT}
    assert "accuracy" not in result.output


def test_a_duet_is_a_run_of_pairs_that_is_compared(call, checkout):
    machine = Machine(slower=0.2)
    result = call(machine, *TWO, "--phases", "duet", status=0)
    trials = record_of(checkout).trials
    assert [trial.side for trial in trials[:4]] == [0, 1, 1, 0]
    assert {trial.phase for trial in trials} == {Phase.DUET}
    assert "duet_cpu_time" in result.output


def test_a_duet_of_one_is_refused(call):
    result = call(Machine(), "--build", "tiny-1.0", "--phases", "duet")
    assert "expected two builds that compute on a CPU, found tiny-1.0 (cpu)" in result.output
    assert result.exit_code == 2


class UnevenMachine(Machine):
    """Its clock and its engine's work scatter from trial to trial."""

    def kernel_seconds(self) -> tuple[float, ...]:
        return (0.01 * float(self._rng.lognormal(0.0, 0.3)),) * 3

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        measured = super().measure(phase, trial)
        if phase is not Phase.PERFORMANCE:
            return measured
        work = Sample("engine_cpu_time", (0.01 * float(self._rng.lognormal(0.0, 0.3)),))
        return TrialResult((*measured.samples, work))


@pytest.mark.parametrize(
    ("words", "phases"),
    [((), [Phase.PERFORMANCE, Phase.DUET]), (("--trials", "7"), [Phase.PERFORMANCE])],
)
def test_a_restless_machine_that_leaves_the_work_open_goes_to_a_duet(
    call, checkout, monkeypatch, words, phases
):
    machine = UnevenMachine(slower=0.1)
    monkeypatch.setattr(machine_state, "kernel_seconds", machine.kernel_seconds)
    result = call(machine, *TWO, *words)
    runs = [read_run(record) for record in list_records(checkout / "results")]
    measured = {phase for run in runs for phase in {trial.phase for trial in run.trials}}
    assert [phase for phase in Phase if phase in measured & {*phases, Phase.DUET}] == phases
    assert ("a duet tells" in result.output) is (Phase.DUET in phases)


def test_trials_set_the_first_look(call, checkout):
    call(Machine(), *TWO, "--until-decided", "--trials", "20")
    assert record_of(checkout).looks == InterimAnalyses(schedule(20), (20,))


def test_no_time_for_a_single_trial_is_reported_and_is_status_1(call, checkout):
    result = call(Machine(), *TWO, "--until-decided", "--max-minutes", "0.000001", status=1)
    assert "no timed trial fitted into the time" in result.output
    looks = record_of(checkout).looks
    assert looks is not None
    assert looks.made == ()


def test_an_ordinary_run_has_no_looks_but_sees_the_machine(call, checkout):
    call(Machine(), *TWO, status=0)
    run = record_of(checkout)
    assert run.looks is None
    around = [trial.surroundings for trial in run.trials if trial.phase in TIMED]
    assert {seen.kernel_median_s for seen in around if seen is not None} == {0.011}
    assert all(t.surroundings is None for t in run.trials if t.phase not in TIMED)


def test_a_build_of_a_gpu_leaves_its_gpu_in_the_record(call, checkout, monkeypatch):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(builds.read_text().replace('"cpu"', '"cuda"'))
    monkeypatch.setattr(machine_state, "PERIOD_S", 0.001)
    card = Card(reasons=pynvml.nvmlClocksEventReasonHwThermalSlowdown)
    library = pretend(monkeypatch, card)

    watches: list[machine_state.Watch] = []

    class Seen(machine_state.Watch):
        def start(self) -> None:
            card.used = 40 * GIB
            super().start()
            watches.append(self)

    class Waiting(Machine):
        def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
            while phase in TIMED and len(watches[-1]._gpus._readings) < 2:
                pass
            return super().measure(phase, trial)

    monkeypatch.setattr(session, "Watch", Seen)
    assert "The GPU was throttled in" in call(Waiting(), *TWO).output
    run = record_of(checkout)
    assert run.testbed.id.startswith("nvidia-h200-x1-")
    around = [trial.surroundings for trial in run.trials if trial.phase in TIMED]
    assert all(seen is not None and seen.gpus[0].readings >= 1 for seen in around)
    assert library.open == 0


def test_a_build_of_a_gpu_without_a_driver_ends_in_one_line(call, checkout, monkeypatch):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(builds.read_text().replace('"cpu"', '"cuda"'))
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    result = call(Machine(), *TWO, status=2)
    assert result.output.splitlines()[-1].startswith(
        "hybridwatch: no NVIDIA driver on this machine"
    )
    assert list_records(checkout / "results") == []


def test_a_trial_that_fails_leaves_no_watch_behind(call, checkout, monkeypatch):
    builds = checkout / "engine" / "builds.toml"
    builds.write_text(builds.read_text().replace('"cpu"', '"cuda"'))
    library = pretend(monkeypatch, Card())

    def fail(*_: object) -> TrialResult:
        raise MeasurementError("nothing came of it")

    machine = Machine()
    monkeypatch.setattr(machine, "measure", fail)
    call(machine, *TWO)
    assert all(trial.failure for trial in record_of(checkout).trials)
    assert not [one for one in threading.enumerate() if one.name == "gpu watch"]
    assert library.open == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*TWO[:2], "--until-decided"), "--until-decided: expected two builds to decide between"),
        ((*TWO, "--max-minutes", "5"), "--max-minutes: only --until-decided has a budget"),
        (
            (*TWO, "--until-decided", "--phases", "contract"),
            "--phases leaves nothing that is timed",
        ),
        (
            (*TWO, "--phases", "contracts"),
            "expected contract, accuracy, performance, host-sync, duet, found",
        ),
        ((*TWO, "--until-decided", "--max-minutes", "0"), "0.0 is not in the range x>0"),
    ],
)
def test_wrong_calls_are_status_2_and_measure_nothing(call, words, told):
    machine = Machine()
    assert told in call(machine, *words, status=2).output
    assert machine.order == []


@pytest.mark.parametrize("more", [(), ("--until-decided",)])
def test_the_verdict_is_stored_and_had_again_from_the_record(call, checkout, more):
    result = call(Machine(slower=0.2), *TWO, *more)
    (verdict,) = list_verdicts(checkout / "results")
    said = result.output.splitlines()
    assert f"verdict: {verdict}" in said
    assert f"next:    hybridwatch explain {verdict}" in said
    run_verb("explain", verdict, status=0)
    told = call(Machine(), *TWO, *more, "--json")
    (outcome,) = json.loads(told.stdout)["runs"]
    assert Path(outcome["verdict"]) in list_verdicts(checkout / "results")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EngineError("the engine ended while starting (status 1)", "last words"), 1),
        (BuildError("x-1.0: fix does not apply"), 2),
        (ScenarioError("smoke/again: accuracy.tasks: the hub cannot be reached"), 2),
    ],
)
def test_an_engine_or_a_model_that_does_not_come_up_leaves_the_other_scenarios_alone(
    call, checkout, monkeypatch, error, status
):
    make_checkout(checkout, "smoke/again")
    is_model = isinstance(error, ScenarioError)

    def refuse(scenario: Any, *_: object) -> None:
        if is_model and scenario.id == "smoke/again":
            raise error

    class DeadBench(MadeUpBench):
        def identify(self, side: int) -> Any:
            if self.scenario.id == "smoke/again" and not is_model:
                raise error
            return super().identify(side)

    monkeypatch.setattr(session, "EnginePool", DeadBench)
    monkeypatch.setattr(verb, "make_ready", refuse)
    both = call(Machine(), "--build", "tiny-1.0", of="smoke", status=1)
    assert f"smoke/again: {error}" in both.output
    assert ("last words" in both.output) is (status == 1)
    assert record_of(checkout).scenario.id == "smoke/padded"
    alone = call(Machine(), "--build", "tiny-1.0", of="smoke/again", status=status)
    assert f"hybridwatch: {error}" in alone.stderr


def test_one_build_has_no_verdict(call, checkout):
    told = call(Machine(), "--build", "tiny-1.0", "--json")
    (outcome,) = json.loads(told.stdout)["runs"]
    assert outcome["verdict"] is None
    assert list_verdicts(checkout / "results") == []


def controlled(
    checkout: Path, monkeypatch: Any, *, blind: bool = False, status: int | None = None
) -> Result:
    make_checkout(checkout, "smoke/again")
    monkeypatch.chdir(checkout)
    monkeypatch.setattr(session, "EnginePool", ControlBench)
    monkeypatch.setattr(session, "measure", BadMachine(blind=blind).measure)
    # As on a GPU, which has no room for the engines of several scenarios.
    monkeypatch.setattr(verb.RunOptions, "by_phase", False)
    bad = "tiny-1.0~padded-rows-prefilling"
    monkeypatch.setattr(verb, "healthy_label", lambda *_: "tiny-1.0")
    monkeypatch.setattr(verb, "known_bad_label", lambda *_: bad)
    words = ("--known-bad", "--build", "tiny-1.0")
    return run_verb("run", "smoke/padded", "smoke", *words, status=status)


def test_several_scenarios_end_with_one_screen(checkout, monkeypatch):
    result = controlled(checkout, monkeypatch, status=0)
    lines = result.output.splitlines()
    screen = lines[next(at for at, line in enumerate(lines) if line.startswith("scenario ")) :]
    assert len(screen) <= 20
    assert max(map(len, screen)) <= 80
    assert [line.split()[:2] for line in screen if line.startswith("smoke/")] == [
        ["smoke/padded", "caught"],
        ["smoke/again", "caught"],
    ]
    assert "2 of 2 bugs caught, the healthy engine clean." in screen
    assert "Bad news" not in result.output
    assert "[1/2] smoke/padded: tiny-1.0 against tiny-1.0~padded-rows-prefilling" in lines
    # What comes next works as printed.
    printed = result.output.partition("next:")[2].strip().splitlines()
    compare, gate, dashboard = (line.split()[1:] for line in printed)
    run_verb(*compare, status=1)
    run_verb(*gate, status=0)
    assert dashboard == ["dashboard"]


def test_a_bug_that_is_not_caught_is_bad_news(checkout, monkeypatch):
    result = controlled(checkout, monkeypatch, blind=True, status=1)
    assert "0 of 2 bugs caught" in result.output
    assert "the bug was not caught: without padded-rows-prefilling this passes" in result.output


class StoppedMachine(Machine):
    """Is stopped as by Ctrl-C when it has made so many trials of a phase."""

    def __init__(self, phase: Phase, after: int) -> None:
        super().__init__(noise=0.005)
        self._phase, self._after = phase, after

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        made = sum(one is self._phase for one, _ in self.order)
        if phase is self._phase and made >= self._after:
            raise KeyboardInterrupt
        return super().measure(phase, trial)


def test_a_stopped_duet_keeps_its_rounds_prints_them_and_goes_on(call, checkout):
    words = (*TWO, "--phases", "duet")
    result = call(StoppedMachine(Phase.DUET, 6), *words, status=130)
    assert "duet_cpu_time" in result.output
    assert "smoke/padded: stopped in duet; what was measured is in " in result.output
    run = record_of(checkout)
    assert [trial.failure is None for trial in run.trials] == [True] * 6 + [False] * 2
    machine = Machine(noise=0.005)
    result = call(machine, *words, "--resume", status=0)
    assert len(machine.order) == 2 * (7 - 3)
    *_, last = [read_run(path) for path in list_records(checkout / "results")]
    whole = last if last.id != run.id else read_run(list_records(checkout / "results")[0])
    assert [trial.failure for trial in whole.trials] == [None] * 14
    assert whole.trials[0].samples == run.trials[0].samples


def test_a_round_that_one_side_alone_has_made_is_made_again(call):
    """Of the timed trials two are warm-ups: five are two rounds and a half."""
    words = (*TWO, "--phases", "performance")
    stopped = StoppedMachine(Phase.PERFORMANCE, 2 + 5)
    call(stopped, *words)
    machine = Machine(noise=0.005)
    call(machine, *words, "--resume", status=0)
    rounds = [(Phase.PERFORMANCE, side) for at in range(2, 7) for side in ((0, 1), (1, 0))[at % 2]]
    assert machine.order == [(Phase.PERFORMANCE, 0), (Phase.PERFORMANCE, 1), *rounds]


def test_a_run_until_decided_goes_on_with_its_contracts_alone(call, checkout):
    words = (*TWO, "--until-decided")
    call(StoppedMachine(Phase.HOST_SYNC, 5), *words, status=130)
    stopped = record_of(checkout)
    assert {trial.phase for trial in stopped.failed(0)} == set(TIMED)
    machine = Machine(noise=0.005)
    call(machine, *words, "--resume", status=0)
    assert {phase for phase, _ in machine.order} == set(TIMED)
    runs = [read_run(path) for path in list_records(checkout / "results")]
    (whole,) = [run for run in runs if run.id != stopped.id]
    assert whole.looks is not None
    assert is_decided(build_report(whole))


def test_a_stated_line_is_that_of_the_last_build_and_a_wrong_one_is_reported(call, monkeypatch):
    asked = []

    class Asked(MadeUpBench):
        def __init__(self, scenario, sides, *rest) -> None:
            super().__init__(scenario, *rest)
            asked.extend(sides)

    monkeypatch.setattr(session, "EnginePool", Asked)
    brief = ("--phases", "contract", *TWO)
    result = call(Machine(), *brief, "--line", "nightly", status=0)
    assert [side.line for side in asked] == ["nightly", "nightly"], "two sides of one build"
    other = replace(asked[0], spec=asked[0].spec.model_copy(update={"name": "other"}), line=None)
    assert [side.line for side in on_line([other, asked[1]], "pr-1")] == [None, "pr-1"]
    result = call(Machine(), *brief, "--line", "two words", status=2)
    assert "expected 1 to 64 letters" in result.output
    assert "found 'two words'" in result.output


def timed_in(trials: list[Trial]) -> Counter[tuple[Phase, int, bool]]:
    return Counter((one.phase, one.side, one.warmup) for one in trials if one.phase in TIMED)


@pytest.mark.parametrize("staged", [(), ("--by-phase",)])
def test_what_got_slower_is_measured_again_as_often_in_the_same_record(call, checkout, staged):
    result = call(Machine(slower=0.1), *TWO, *staged, status=0)
    run = record_of(checkout)
    again = run.second_look
    assert again is not None
    first = [one for one in run.trials if one.index < again]
    second = [one for one in run.trials if one.index >= again]
    assert {one.phase for one in second} == set(TIMED)
    assert timed_in(second) == timed_in(first)
    assert of_metric(run, "tpot") == "regression"
    assert bool(staged) != ("(worse): measuring again, on new engines" in result.output)


def test_the_luck_of_a_start_is_not_called_a_change(call, checkout):
    """A second look at the engines of the first would say the same again: they live on."""
    call(UnluckyMachine(), *TWO, status=0)
    report = build_report(record_of(checkout))
    timed = [one for one in report.comparisons if one.metric.id == "tpot"]
    assert [one.verdict.value for one in timed] == ["inconclusive"]
    assert any("did not (" in doubt for doubt in timed[0].doubts)


@pytest.mark.parametrize(("slower", "verdict"), [(0.0, "inconclusive"), (0.1, "regression")])
def test_a_change_on_some_starts_is_luck_and_one_on_all_is_told(call, checkout, slower, verdict):
    lucks = [luck + slower for luck in (0.1, -0.02, 0.09, -0.03, 0.11, 0.08)]
    words = ("--starts", "6", "--trials", "12", "--phases", "performance", "--no-second-look")
    call(LuckyStarts(lucks), *TWO, *words, status=0)
    run = record_of(checkout)
    made = Counter(one.start for one in run.trials if not one.warmup)
    assert made == dict.fromkeys(range(6), 4), "two blocks on each start"
    assert of_metric(run, "tpot") == verdict
    by_block = replace(run, trials=tuple(replace(one, start=None) for one in run.trials))
    assert of_metric(by_block, "tpot") == "regression"


@pytest.mark.parametrize("words", [(*TWO, "--until-decided"), ("--known-bad", *TWO[:2])])
def test_starts_without_a_fixed_number_of_trials_are_refused(call, checkout, words):
    assert "--starts: expected" in call(Machine(), *words, "--starts", "2", status=2).output
    assert not list_records(checkout / "results")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (Machine(), TWO),
        (Machine(slower=0.1), (*TWO, "--no-second-look")),
        (Machine(slower=0.1), (*TWO, "--until-decided")),
        (Machine(slower=0.1), TWO[:2]),
        (BadMachine(), TWO),
    ],
    ids=["nothing changed", "turned off", "until decided", "one build", "a contract is broken"],
)
def test_nothing_is_measured_again_without_a_reason(call, checkout, machine, words):
    call(machine, *words)
    assert record_of(checkout).second_look is None


def test_a_known_bad_control_is_not_measured_again(call, checkout, monkeypatch):
    monkeypatch.setattr(session, "EnginePool", ControlBench)
    monkeypatch.setattr(verb.RunOptions, "by_phase", False)
    monkeypatch.setattr(verb, "healthy_label", lambda *_: "tiny-1.0")
    bad = "tiny-1.0~padded-rows-prefilling"
    monkeypatch.setattr(verb, "known_bad_label", lambda *_: bad)
    call(Machine(slower=0.1), "--known-bad", "--thorough", "--build", "tiny-1.0")
    assert record_of(checkout).second_look is None


class MachineStoppedLate(Machine):
    """Is stopped in the second look."""

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        pool: Any = trial.pool
        if pool.starts > 1 and phase is Phase.HOST_SYNC:
            raise KeyboardInterrupt
        return super().measure(phase, trial)


@pytest.mark.parametrize("staged", [(), ("--by-phase",)])
def test_a_run_stopped_in_its_second_look_keeps_the_first_which_is_whole(call, checkout, staged):
    call(MachineStoppedLate(slower=0.1), *TWO, *staged, status=130)
    run = record_of(checkout)
    assert run.second_look is None
    assert not list(run.failed(0))
    assert of_metric(run, "tpot") == "regression", "judged as ever"
    machine = Machine()
    call(machine, *TWO, *staged, "--resume", status=0)
    assert machine.order == []


def of_metric(run: Run, metric: str) -> str:
    return next(c.verdict.value for c in build_report(run).comparisons if c.metric.id == metric)


def test_a_policy_that_is_wrong_is_told_before_anything_is_measured(call, checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    (checkout / "ci").mkdir(exist_ok=True)
    (checkout / "ci" / "gate.toml").write_text("[[rule]]\nmetric = 'tpot'\n")
    machine = Machine(slower=0.1)
    assert call(machine, *TWO).exit_code
    assert machine.order == []
