"""``hybridwatch try``: a patched tree is measured against the release below it."""

import json
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.cli.outcome import RunOutcome
from hybridwatch.cli.try_source import _slowness
from hybridwatch.engines.builds import load_builds
from hybridwatch.measurement import machine_state, session
from hybridwatch.measurement.plan import USUAL_PHASES
from hybridwatch.records.run import Phase
from hybridwatch.records.store import list_records, read_run
from hybridwatch.scenarios.load import find
from tests.broken_engines import BadMachine, Machine, MadeUpBench
from tests.builders import BASELINE, a_comparison, noisy
from tests.checkout import a_copy, an_environment, make_home
from tests.command_line import run_verb

SCENARIOS = ["smoke/again", "smoke/padded"]


class OwnBench(MadeUpBench):
    """Stands for a release beside a patched tree."""

    def identify(self, side):
        return (BASELINE, replace(BASELINE, label="mine@1a2b3c4d", name="mine"))[side]


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """A checkout, and engines of whatever numbers a machine makes up."""
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(make_home(tmp_path / "home", *SCENARIOS)))
    monkeypatch.setattr(session, "EnginePool", OwnBench)
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda: (0.01, 0.011, 0.012))

    def made(machine):
        monkeypatch.setattr(session, "measure", machine.measure)
        return machine

    return made


def call(tmp_path, *words, status=None):
    results = ("--results", str(tmp_path / "results"))
    return run_verb("try", *words, *results, status=status)


def phases_of(machine):
    return [phase for phase, _ in groupby(phase for phase, _ in machine.order)]


def test_contracts_come_first_and_what_they_show_is_the_answer(engines, tmp_path):
    machine = engines(BadMachine())
    done = call(tmp_path, a_copy(tmp_path, worker="rows = 2\n"), status=1)
    assert "Python files that differ from the wheel's: v1/worker.py" in done.output
    assert phases_of(machine) == [Phase.CONTRACT, Phase.ACCURACY], "nothing is timed any more"
    assert {side for _, side in machine.order} == {0, 1}
    assert "worse than tiny-1.0 in smoke/padded: padded_rows_prefilling 0 \u2192 7" in done.output
    assert "not timed: smoke/again, smoke/padded" in done.output
    runs = [read_run(record) for record in list_records(tmp_path / "results")]
    assert sorted(run.scenario.id for run in runs) == SCENARIOS
    assert {run.builds[1].label for run in runs} == {"mine@1a2b3c4d"}


def test_a_build_that_is_right_but_slower_is_worse(engines, tmp_path):
    machine = engines(Machine(slower=0.06, noise=0.005))
    done = call(tmp_path, a_copy(tmp_path), status=1)
    assert phases_of(machine)[:2] == [Phase.CONTRACT, Phase.ACCURACY]
    assert set(machine.order) == {(phase, side) for phase in USUAL_PHASES for side in range(2)}
    assert "worse than tiny-1.0 in smoke/again: tpot" in done.output
    assert "not timed: smoke/padded" in done.output, "the first that is slower is the answer"


def test_nothing_is_found_in_a_build_that_is_as_good(engines, tmp_path):
    machine = engines(Machine(noise=0.005))
    done = call(tmp_path, a_copy(tmp_path), status=0)
    assert "nothing worse than tiny-1.0 in 2 scenarios" in done.output
    assert "not timed" not in done.output
    timed = {
        name
        for name, (phase, _) in zip(machine.scenarios, machine.order, strict=True)
        if phase is Phase.PERFORMANCE
    }
    assert timed == set(SCENARIOS)


def test_phases_that_are_named_are_measured_whatever_else_is_wrong(engines, tmp_path):
    machine = engines(BadMachine())
    words = ("smoke/padded", "--phases", "contract,performance", "--json")
    done = call(tmp_path, a_copy(tmp_path), *words, status=1)
    assert set(phases_of(machine)) == {Phase.CONTRACT, Phase.PERFORMANCE}
    assert set(machine.scenarios) == {"smoke/padded"}
    found = json.loads(done.stdout)
    assert found["worse"] is True
    assert [run["troubles"] for run in found["runs"]] == [[], []]


def test_time_that_is_over_before_anything_is_timed(engines, tmp_path):
    machine = engines(Machine())
    done = call(tmp_path, a_copy(tmp_path), "--max-minutes", "0.000001", status=0)
    assert phases_of(machine) == [Phase.CONTRACT, Phase.ACCURACY]
    assert "not timed: smoke/again, smoke/padded" in done.output


def test_environment_names_no_release_by_itself(engines, tmp_path):
    machine = engines(Machine())
    an_environment(tmp_path / "env")
    done = call(tmp_path, tmp_path / "env" / "bin" / "python", status=2)
    assert "mine: has no release below it; --base names the one to compare with" in done.output
    assert machine.order == []


def test_the_first_answer_is_of_what_answers_quickly():
    """The interpreter takes a minute and more for what others do in seconds."""
    root = Path(__file__).parents[3] / "scenarios"
    names = [one.id.removeprefix("smoke/") for one in sorted(find(root, ["smoke"]), key=_slowness)]
    assert names[-3:] == ["spec-decode-all-cache", "structured-output", "draft-max-seq-len"]
    assert {"dummy-run", "padded-graph-rows", "single-token-extend"} <= set(names[:-2])


def test_the_answer_says_what_was_not_looked_at(engines, tmp_path):
    engines(Machine())
    words = ("--phases", "contract", "--json")
    done = call(tmp_path, a_copy(tmp_path), *words, status=0)
    assert "nothing worse than tiny-1.0 in 2 scenarios: contracts\n" in done.stderr
    assert "not looked at: answers, times, host reads" in done.stderr
    assert "both sides of each in turn: contracts\n" in done.stderr, "no other stage is announced"
    found = json.loads(done.stdout)
    assert found["not_looked_at"] == ["accuracy", "performance", "host-sync"]
    assert found["not_timed"] == []


def test_a_stated_line_is_that_of_the_own_build_and_none_is_none(engines, tmp_path, monkeypatch):
    asked = []

    class Asked(OwnBench):
        def __init__(self, scenario, sides, *rest) -> None:
            super().__init__(scenario, *rest)
            asked.append([side.line for side in sides])

    monkeypatch.setattr(session, "EnginePool", Asked)
    engines(Machine())
    for stated, line in (((), None), (("--line", "pr-1"), "pr-1")):
        done = call(tmp_path, a_copy(tmp_path), "smoke/padded", "--phases", "contract", *stated)
        assert done.exit_code == 0, done.output
        assert asked.pop() == [None, line]


def test_the_table_heads_its_columns_by_what_is_in_them(engines, tmp_path):
    engines(Machine())
    done = call(tmp_path, a_copy(tmp_path), "--phases", "contract")
    head = next(line for line in done.output.splitlines() if line.startswith("scenario "))
    assert head.split() == ["scenario", "result", "shown", "by"]


def test_times_that_settle_nothing_say_what_it_would_take(engines, tmp_path):
    engines(Machine(slower=0.08, noise=0.3))
    done = call(tmp_path, a_copy(tmp_path), "smoke/padded", status=0)
    assert "Could only have seen changes above " in done.output
    assert "\nit would take " in done.output
    command = "hybridwatch run smoke/padded --build tiny-1.0 --build mine --phases duet"
    assert f"processor time: {command} --results " in done.output


def test_times_that_are_settled_leave_nothing_open(engines, tmp_path):
    engines(Machine(noise=0.005))
    done = call(tmp_path, a_copy(tmp_path))
    assert "not looked at" not in done.output
    assert "it would take" not in done.output


def test_an_environment_without_a_base_adds_no_build(engines, tmp_path):
    an_environment(tmp_path / "env")
    call(tmp_path, tmp_path / "env" / "bin" / "python")
    assert "mine" not in load_builds()


SHIPPED = Path(__file__).parents[3] / "scenarios"


def test_a_run_of_which_one_comparison_is_open_is_not_called_equivalent() -> None:
    (scenario,) = find(SHIPPED, ("smoke/padded-graph-rows",))
    old, new = (
        {"host_syncs_per_step": (3.0,) * 7, "tpot": noisy(1.0, 5, 0.1, seed)} for seed in (1, 2)
    )
    run = a_comparison(old, new)
    outcome = RunOutcome(scenario, run, Path("record.json"), build_report(run))
    word, _, by = outcome.summary()
    assert (word, by) == ("inconclusive", "1 comparison")


def test_what_is_named_first_is_what_the_gate_names() -> None:
    (scenario,) = find(SHIPPED, ("smoke/padded-graph-rows",))
    found = {"contract.changed_tokens": 30.0, "contract.wrong_answers": 63.0, "itl": 1.0}
    run = a_comparison(dict.fromkeys(found, (0.0,)), {name: (n,) for name, n in found.items()})
    outcome = RunOutcome(scenario, run, Path("record.json"), build_report(run))
    assert outcome.summary()[2] == "wrong_answers 0 \u2192 63, 1 more"
    assert outcome.bad_news[0].metric.id == "contract.wrong_answers"
