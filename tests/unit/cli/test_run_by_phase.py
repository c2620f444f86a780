"""``hybridwatch run --known-bad`` of several scenarios: what is broken first, then the rest."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from click.testing import Result
from rich.console import Console
from rich.text import Text

from hybridwatch.cli import run as verb
from hybridwatch.cli.by_phase import Board
from hybridwatch.cli.subjects import briefly
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.measurement import machine_state, session
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import TrialResult
from hybridwatch.measurement.session_request import Progress, is_stopped
from hybridwatch.records.run import Phase, Run
from hybridwatch.records.store import list_records, list_verdicts, read_run
from hybridwatch.scenarios.load import find
from tests.broken_engines import TIMED, BadMachine, ControlBench, Machine
from tests.checkout import make_checkout
from tests.command_line import run_verb

SCENARIOS = ["smoke/again", "smoke/padded"]
GOOD, BAD = "tiny-1.0", "tiny-1.0~padded-rows-prefilling"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two scenarios, whose bug their engines of numbers have on one side."""
    make_checkout(tmp_path, *SCENARIOS)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(tmp_path))
    monkeypatch.setattr(verb, "require_installed", lambda _: None)
    monkeypatch.setattr(verb, "healthy_label", lambda *_: GOOD)
    monkeypatch.setattr(verb, "known_bad_label", lambda *_: BAD)
    monkeypatch.setattr(session, "EnginePool", ControlBench)
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda: (0.01, 0.011, 0.012))
    return tmp_path


@pytest.fixture
def plain(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run scenarios on a machine of numbers."""

    def run(machine: Machine, *words: str, of: str = "smoke", status: int | None = None) -> Result:
        monkeypatch.setattr(session, "measure", machine.measure)
        results = ("--results", str(checkout / "results"))
        return run_verb("run", of, *words, *results, status=status)

    return run


@pytest.fixture
def call(plain) -> Callable[..., Result]:
    """Run them as known-bad controls."""
    return lambda machine, *words, **expected: plain(
        machine, "--known-bad", "--build", GOOD, *words, **expected
    )


def runs_in(checkout: Path) -> list[Run]:
    runs = [read_run(record) for record in list_records(checkout / "results")]
    return sorted(runs, key=lambda run: run.scenario.id)


def counts(run: Run) -> Counter[Phase]:
    """Trials of one side that count."""
    return Counter(trial.phase for trial in run.measured(0))


def test_contracts_of_all_come_first_then_answers_then_times(call):
    machine = BadMachine()
    call(machine, status=0)
    stages = ["times" if phase in TIMED else phase.value for phase, _ in machine.order]
    made = [key for key, _ in groupby(zip(stages, machine.scenarios, strict=True))]
    expected = [(s, name) for s in ("contract", "accuracy", "times") for name in SCENARIOS]
    assert made == expected
    timed = [side for phase, side in machine.order if phase is Phase.PERFORMANCE]
    assert timed[:6] == [0, 1, 1, 0, 0, 1], "sides take turns as in any other run"


def test_no_more_is_measured_than_shows_a_bug_and_the_record_says_what_was_expected(call, checkout):
    call(BadMachine())
    for run in runs_in(checkout):
        wanted = {Phase.CONTRACT: 1, Phase.ACCURACY: 1, Phase.PERFORMANCE: 2, Phase.HOST_SYNC: 1}
        assert counts(run) == wanted
        assert not [trial for trial in run.trials if trial.failure]
        assert run.known_bad is True
        assert run.expected is not None
        assert run.expected.exactly["contract.padded_rows_prefilling"] == 0


@pytest.mark.parametrize(
    ("words", "performance"), [(("--thorough",), 7), (("--trials", "9"), 9)], ids=str
)
def test_more_is_measured_when_it_is_wanted(call, checkout, words, performance):
    result = call(BadMachine(), *words)
    assert {counts(run)[Phase.PERFORMANCE] for run in runs_in(checkout)} == {performance}
    assert "--thorough" not in result.output


def test_only_documents_that_are_wanted_are_asked(call, monkeypatch):
    machine = BadMachine()
    asked = []

    def measure(phase: Phase, trial: TrialContext) -> TrialResult:
        assert trial.scenario.accuracy is not None
        asked.append(trial.scenario.accuracy.documents)
        return BadMachine.measure(machine, phase, trial)

    monkeypatch.setattr(machine, "measure", measure)
    for words, documents in [((), 60), (("--thorough",), 200), (("--documents", "5"), 5)]:
        call(machine, *words)
        assert set(asked) == {documents}
        asked.clear()


def test_of_few_documents_a_half_is_asked(checkout):
    (scenario, _) = find(checkout / "scenarios", ["smoke"])
    assert scenario.accuracy is not None
    few = scenario.accuracy.model_copy(update={"documents": 25})
    for asking, documents in [(few, 13), (None, None)]:
        brief = briefly(scenario.model_copy(update={"accuracy": asking})).accuracy
        assert (brief.documents if brief else None) == documents


def test_counts_do_not_end_a_series(call, checkout):
    call(BadMachine())
    brief = {run.scenario for run in runs_in(checkout)}
    call(BadMachine(), "--thorough")
    assert {run.scenario for run in runs_in(checkout)} == brief


def test_it_ends_with_one_screen(call):
    result = call(BadMachine())
    lines = result.output.splitlines()
    screen = lines[next(at for at, line in enumerate(lines) if line.startswith("scenario ")) :]
    assert len(screen) <= 20
    caught = [line.split()[:2] for line in screen if line.startswith("smoke/")]
    assert caught == [[name, "caught"] for name in SCENARIOS]
    assert "2 of 2 bugs caught, the healthy engine clean." in screen
    assert (
        "brief:    2 trials a side settle nothing about time; --thorough makes them all" in screen
    )
    assert any(line.startswith("next: ") and " compare " in line for line in screen)


def test_a_log_has_a_line_for_each_step(call):
    result = call(BadMachine())
    first, *lines = result.output.splitlines()
    said = "both sides of each in turn: contracts, then accuracy, then times"
    assert first == f"2 scenarios, {said}"
    steps = [line for line in lines if line.startswith("[")]
    assert [line.split()[0] for line in steps] == [f"[{at}/6]" for at in range(1, 7)]
    found = [line.partition("smoke/again, ")[2] for line in steps if "smoke/again" in line]
    assert found == [
        "contracts: caught: padded_rows_prefilling 0 → 7",
        "accuracy: inconclusive: 1 comparison",
        "times: inconclusive: 2 comparisons",
    ]
    assert "performance" not in result.output


def test_json_stays_alone_on_standard_output(call, checkout):
    result = call(BadMachine(), "--json")
    told = json.loads(result.stdout)["runs"]
    assert [one["report"]["scenario"]["id"] for one in told] == SCENARIOS
    assert [Path(one["record"]) in list_records(checkout / "results") for one in told] == [True] * 2


def test_an_engine_that_does_not_come_up_leaves_the_others_alone(call, checkout, monkeypatch):
    class Dead(ControlBench):
        def identify(self, side: int) -> Any:
            if self.scenario.id == "smoke/again":
                raise EngineError("the engine ended while starting (status 1)", "last words")
            return super().identify(side)

    monkeypatch.setattr(session, "EnginePool", Dead)
    result = call(BadMachine(), status=1)
    assert result.output.count("smoke/again: the engine ended while starting") == 1
    assert [run.scenario.id for run in runs_in(checkout)] == ["smoke/padded"]


def test_what_keeps_an_engine_from_starting_ahead_is_reported_in_its_own_turn(
    call, checkout, monkeypatch
):
    class Draftless(ControlBench):
        def __enter__(self) -> Self:
            if self.scenario.id == "smoke/padded":
                raise BuildError("smoke/padded: draft model: expected a folder")
            return self

    monkeypatch.setattr(session, "EnginePool", Draftless)
    assert call(BadMachine(), status=1).output.count("draft model: expected a folder") == 1
    assert [run.scenario.id for run in runs_in(checkout)] == ["smoke/again"]


def test_a_client_that_fails_leaves_what_was_measured_before_it(call, checkout, monkeypatch):
    class Clientless(ControlBench):
        def client(self, _side: int) -> Any:
            def fail() -> None:
                raise EngineError("the load client ended")

            return SimpleNamespace(make_ready=fail, start_ahead=lambda: None)

    monkeypatch.setattr(session, "EnginePool", Clientless)
    assert "failed: not measured: the load client ended" in call(BadMachine(), status=1).output
    for run in runs_in(checkout):
        assert counts(run) == {Phase.CONTRACT: 1, Phase.ACCURACY: 1}
        assert {trial.phase for trial in run.failed(0)} == set(TIMED)
    assert len(list_verdicts(checkout / "results")) == 2


class StoppedMachine(BadMachine):
    """Is stopped as by Ctrl-C in one phase of one scenario."""

    def __init__(self, phase: Phase, scenario: str, *, blind: bool = False) -> None:
        super().__init__(blind=blind)
        self._end = phase, scenario

    def measure(self, phase: Phase, trial: TrialContext) -> TrialResult:
        if (phase, trial.scenario.id) == self._end:
            raise KeyboardInterrupt
        return super().measure(phase, trial)


def test_a_stop_keeps_whole_phases_and_says_what_is_lacking(call, checkout):
    machine = StoppedMachine(Phase.ACCURACY, "smoke/padded")
    result = call(machine, status=130)
    assert "smoke/again: stopped in performance; what was measured is in " in result.output
    assert "smoke/padded: stopped in accuracy; what was measured is in " in result.output
    again, padded = runs_in(checkout)
    assert counts(again) == {Phase.CONTRACT: 1, Phase.ACCURACY: 1}
    assert counts(padded) == {Phase.CONTRACT: 1}
    for side in (0, 1):
        lacking = [trial.phase for trial in padded.failed(side)]
        assert lacking == [Phase.ACCURACY, *TIMED]
        reasons = {trial.failure.reason for trial in padded.failed(side) if trial.failure}
        assert reasons == {"not measured: the run was stopped before"}


TWO = ("--build", GOOD, "--build", GOOD)
FOUND = "padded_rows_prefilling 0 \N{RIGHTWARDS ARROW} 7"


@pytest.mark.parametrize(
    ("words", "phase", "rows"),
    [
        (
            ("--known-bad", "--build", GOOD),
            Phase.CONTRACT,
            [f"smoke/again caught {FOUND}; stopped in accuracy", "smoke/padded not measured"],
        ),
        (
            (*TWO, "--by-phase"),
            Phase.ACCURACY,
            [
                f"smoke/again regression {FOUND}; stopped in performance",
                f"smoke/padded regression {FOUND}; stopped in accuracy",
            ],
        ),
        (
            TWO,
            Phase.PERFORMANCE,
            [
                f"smoke/again regression {FOUND}",
                f"smoke/padded regression {FOUND}; stopped in performance",
            ],
        ),
        (
            ("--build", GOOD),
            Phase.CONTRACT,
            [
                "smoke/again measured accuracy.recall 100.0 %, tpot 10.0 ms,",
                "smoke/padded not measured",
            ],
        ),
    ],
)
def test_a_stop_shows_what_was_found_until_then(plain, words, phase, rows):
    stopped = plain(StoppedMachine(phase, "smoke/padded"), *words, status=130)
    lines = [" ".join(line.split()) for line in stopped.output.splitlines()]
    assert [line for line in lines if line.startswith(tuple(f"{s} " for s in SCENARIOS))] == rows
    assert "failed" not in stopped.output
    assert "NOT clean" not in stopped.output


@pytest.mark.parametrize("words", [("--known-bad", "--build", GOOD), TWO, ("--build", GOOD)])
def test_a_stop_of_one_scenario_blames_nothing_that_nobody_made(plain, words):
    machine = StoppedMachine(Phase.ACCURACY, "smoke/padded")
    stopped = plain(machine, *words, of="smoke/padded", status=130)
    assert "smoke/padded: stopped in accuracy; what was measured is in " in stopped.output
    assert "padded_rows_prefilling" in stopped.output
    assert "failed" not in stopped.output
    assert "not as expected" not in stopped.output


def test_a_bug_that_a_stopped_run_has_not_seen_is_not_missed(call):
    machine = StoppedMachine(Phase.ACCURACY, "smoke/again", blind=True)
    stopped = call(machine, status=130)
    assert "missed" not in stopped.output.lower()
    assert "not caught" not in stopped.output


def test_a_phase_tells_what_it_has_found_before_the_scenario_is_whole(plain):
    done = plain(BadMachine(), *TWO, of="smoke/padded")
    lines = [line for line in done.output.splitlines() if line.startswith("  ")]
    assert lines[:3] == [
        f"  contract: regression: {FOUND}",
        "  accuracy: inconclusive: 1 comparison",
        "  performance: inconclusive: 1 comparison",
    ]


def test_a_stopped_run_does_not_read_as_whole(call, checkout):
    machine = StoppedMachine(Phase.ACCURACY, "smoke/again")
    call(machine)
    for run in runs_in(checkout):
        words = ("compare", run.id, "--results", str(checkout / "results"), "--json")
        report = json.loads(run_verb(*words).stdout)
        verdicts = {one["metric"]: one["verdict"] for one in report["comparisons"]}
        assert verdicts["contract.padded_rows_prefilling"] == "regression"
        assert verdicts["accuracy.unknown"] == verdicts["output_throughput"] == "failed"
        assert len(report["failures"]) == 6


def test_a_stopped_run_goes_on_with_what_it_lacks(call, checkout):
    stopped = call(StoppedMachine(Phase.ACCURACY, "smoke/padded"))
    *_, line, interrupted = stopped.output.splitlines()
    assert line.startswith("go on with: hybridwatch ")
    assert line.endswith("--resume")
    assert interrupted == "hybridwatch: interrupted"
    machine = BadMachine()
    call(machine, "--resume", status=0)
    untimed = [
        (phase, scenario)
        for (phase, _), scenario in zip(machine.order, machine.scenarios, strict=True)
        if phase not in TIMED
    ]
    assert set(untimed) == {(Phase.ACCURACY, "smoke/padded")}
    whole = [run for run in runs_in(checkout) if not is_stopped(run)]
    assert [run.scenario.id for run in whole] == SCENARIOS
    for run in whole:
        wanted = {Phase.CONTRACT: 1, Phase.ACCURACY: 1, Phase.PERFORMANCE: 2, Phase.HOST_SYNC: 1}
        assert counts(run) == wanted
    assert list((checkout / "results" / "unfinished").iterdir()) == []


def test_what_was_finished_before_a_stop_is_shown_and_not_repeated(call, checkout):
    first = StoppedMachine(Phase.PERFORMANCE, "smoke/padded")
    stopped = call(first)
    again, padded = runs_in(checkout)
    assert not list(again.failed(0))
    assert {trial.phase for trial in padded.failed(0)} == set(TIMED)
    assert [line.split()[:2] for line in stopped.output.splitlines()
            if line.startswith("smoke/") and "what was measured" not in line] == [
        [name, "caught"] for name in SCENARIOS
    ]  # fmt: skip
    machine = BadMachine()
    result = call(machine, "--resume", status=0)
    assert "going on: 1 scenario measured before" in result.output
    assert set(machine.scenarios) == {"smoke/padded"}
    assert {phase for phase, _ in machine.order} == set(TIMED)
    assert "2 of 2 bugs caught" in result.output


def test_without_the_option_a_stopped_run_is_made_again(call):
    call(StoppedMachine(Phase.ACCURACY, "smoke/padded"))
    machine = BadMachine()
    call(machine)
    assert {phase for phase, _ in machine.order} == {Phase.CONTRACT, Phase.ACCURACY, *TIMED}
    again = BadMachine()
    call(again, "--resume")
    assert len(again.order) == len(machine.order), "that call has come to its end"


def test_another_call_is_no_stopped_one(call):
    call(StoppedMachine(Phase.ACCURACY, "smoke/padded"))
    machine = BadMachine()
    result = call(machine, "--resume", "--thorough")
    assert "--resume: no such call was stopped; everything is measured" in result.output
    assert Phase.CONTRACT in {phase for phase, _ in machine.order}


def test_trials_of_another_build_are_not_put_into_one_run(call, monkeypatch):
    class Edited(ControlBench):
        def identify(self, side: int) -> Any:
            return replace(super().identify(side), code_digest="e" * 64)

    call(StoppedMachine(Phase.ACCURACY, "smoke/padded"))
    monkeypatch.setattr(session, "EnginePool", Edited)
    machine = BadMachine()
    assert call(machine, "--resume", status=1).output.count("builds: expected as in run ") == 2
    assert machine.order == []


def test_a_stop_before_any_whole_phase_leaves_nothing(call, checkout):
    machine = StoppedMachine(Phase.CONTRACT, "smoke/again")
    call(machine, status=130)
    assert list_records(checkout / "results") == []


def test_two_builds_without_a_known_bug_are_measured_scenario_by_scenario(plain, checkout):
    machine = BadMachine()
    plain(machine, *TWO)
    assert [name for name, _ in groupby(machine.scenarios)] == SCENARIOS
    assert {counts(run)[Phase.PERFORMANCE] for run in runs_in(checkout)} == {7}
    assert [run.known_bad for run in runs_in(checkout)] == [False, False]


def test_a_terminal_has_a_line_for_each_scenario() -> None:
    now = 0.0
    console = Console(file=StringIO(), force_terminal=True, width=100)
    board = Board(console, SCENARIOS, clock=lambda: now)
    with board.shown([(Phase.CONTRACT,)] * 2 + [(Phase.ACCURACY,)] * 2 + [TIMED] * 2):
        board.begin(0, (Phase.CONTRACT,))
        now = 41.0
        board.end(0, (Phase.CONTRACT,), Text("caught: wrong_tokens 0 → 25"), Text("news"))
        board.begin(1, (Phase.CONTRACT,))
        board.tell(Progress(1, 12, "contract tiny-1.0"))
        now = 75.0
        drawn = Console(file=StringIO(), width=100)
        drawn.print(board.drawn())
    assert isinstance(drawn.file, StringIO)
    lines = [line.split() for line in drawn.file.getvalue().splitlines()]
    assert lines[0] == ["scenario", "contracts", "accuracy", "times", "found"]
    assert lines[2] == ["smoke/again", "0:41", "caught:", "wrong_tokens", "0", "→", "25"]
    assert lines[3] == ["smoke/padded", "..."]
    assert lines[4] == ["1:15", "contract", "tiny-1.0"]


def test_one_build_alone_is_measured_by_phase_too_and_shows_what_it_has_measured(plain, checkout):
    machine = Machine(noise=0.0)
    done = plain(machine, "--build", GOOD, "--by-phase", "--phases", "contract,accuracy", status=0)
    made = [phase for phase, _ in groupby(phase for phase, _ in machine.order)]
    assert made == [Phase.CONTRACT, Phase.ACCURACY]
    assert [len(run.builds) for run in runs_in(checkout)] == [1, 1]
    steps = [line for line in done.output.splitlines() if line.startswith("[")]
    found = [line.partition("smoke/again, ")[2] for line in steps if "smoke/again" in line]
    assert found == [
        "contracts: measured: 1 contract holds",
        "accuracy: measured: accuracy.recall 100.0 %",
    ]
