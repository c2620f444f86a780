"""``hybridwatch try``: a patched tree is added and measured against the release below it."""

from dataclasses import replace
from itertools import groupby

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.measure import machine_state, session
from hybridwatch.record.run import Phase
from hybridwatch.store import list_records, read_run
from tests.builders import BASELINE
from tests.made_up_engines import BadMachine, MadeUpBench
from tests.small_release import a_copy, an_environment, make_home

SCENARIOS = ["smoke/again", "smoke/padded"]


class OwnBench(MadeUpBench):
    """Stands for a release beside a patched tree."""

    def identify(self, side):
        return (BASELINE, replace(BASELINE, label="mine@1a2b3c4d", name="mine"))[side]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Engines of numbers, of which the contender breaks a contract, in a checkout."""
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(make_home(tmp_path / "home", *SCENARIOS)))
    monkeypatch.setattr(session, "Bench", OwnBench)
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda: (0.01, 0.011, 0.012))
    made = BadMachine()
    monkeypatch.setattr(session, "measure", made.measure)
    return made


def call(tmp_path, *words):
    results = ("--results", str(tmp_path / "results"))
    return CliRunner().invoke(cli, ["try", *map(str, words), *results])


def test_patched_tree_is_measured_against_its_release_contracts_first(machine, tmp_path):
    done = call(tmp_path, a_copy(tmp_path, worker="rows = 2\n"))
    assert done.exit_code == 0, done.output
    assert "Python files that differ from the wheel's: v1/worker.py" in done.output
    made = [phase for phase, _ in groupby(phase for phase, _ in machine.order)]
    assert made == [Phase.CONTRACT, Phase.ACCURACY]
    assert {side for _, side in machine.order} == {0, 1}
    assert "regression" in done.output
    runs = [read_run(record) for record in list_records(tmp_path / "results")]
    assert sorted(run.scenario.id for run in runs) == SCENARIOS
    assert {run.builds[1].label for run in runs} == {"mine@1a2b3c4d"}


def test_thorough_measures_times_too(machine, tmp_path):
    done = call(tmp_path, a_copy(tmp_path), "smoke/padded", "--thorough")
    assert done.exit_code == 0, done.output
    assert {phase for phase, _ in machine.order} == set(Phase)
    assert set(machine.scenarios) == {"smoke/padded"}


def test_environment_names_no_release_by_itself(machine, tmp_path):
    an_environment(tmp_path / "env")
    done = call(tmp_path, tmp_path / "env" / "bin" / "python")
    assert done.exit_code == 2
    assert "mine: has no release below it; --base names the one to compare with" in done.output
    assert machine.order == []
