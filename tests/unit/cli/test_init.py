"""``hybridwatch init``: the files that a home starts with are right as they are."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridwatch.cli.scenarios import init_command as command
from hybridwatch.cli.scenarios import make_home
from hybridwatch.engines.builds import DEFAULT_BUILD, load_builds
from hybridwatch.errors import BuildError
from hybridwatch.orchestration.nightly.policy import find_policy, load_policy
from hybridwatch.scenarios.load import find, survey
from hybridwatch_lab.mutants.catalogue import catalogue

ROOT = Path(__file__).parents[3]


def test_the_files_are_named_and_the_next_commands(tmp_path):
    outcome = CliRunner().invoke(command, [str(tmp_path / "mine")])
    assert outcome.exit_code == 0, outcome.output
    written = {path for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert {str(path) for path in written} <= set(outcome.output.split())
    assert f"cd {tmp_path / 'mine'}" in outcome.output
    assert f"engine install {DEFAULT_BUILD}" in outcome.output


def test_the_scenario_that_it_starts_with_is_valid_beside_those_shipped(own_home):
    (mine,) = find(own_home / "scenarios", ["mine/first"])
    assert mine.fix == "none"
    found = survey(own_home / "scenarios")
    assert found.problems == ()
    assert {one.id for one in survey(ROOT / "scenarios").scenarios} | {mine.id} == {
        one.id for one in found.scenarios
    }


def test_it_starts_with_no_build_and_a_policy_that_stops_a_broken_contract(own_home):
    shipped = [name for name, build in load_builds(ROOT).items() if not build.origin]
    assert list(load_builds(own_home)) == shipped
    policy = load_policy(find_policy(own_home))
    assert policy.rules[0].metric == "contract.*"
    assert policy.expected == ()


def test_its_fault_is_one_of_the_mutants(own_home):
    assert catalogue()["slow-decay"].half == "own"


def test_nothing_is_written_where_one_of_the_files_is(tmp_path):
    (tmp_path / "gate.toml").write_text("mine")
    with pytest.raises(BuildError, match=r"gate.toml: is there already"):
        make_home(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["gate.toml"]


def test_a_checkout_is_no_place_for_a_home():
    outcome = CliRunner().invoke(command, [str(ROOT)])
    assert isinstance(outcome.exception, BuildError)
    assert "is a checkout" in str(outcome.exception)
