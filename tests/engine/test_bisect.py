"""``hybridwatch bisect`` over real commits of a release's Python, with real engines."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.engine.builds import load_builds, named_build
from hybridwatch.engine.installed import look_at
from hybridwatch.home import home
from hybridwatch.store import read_run
from tests.engine.conftest import BUILD
from tests.engine.planted_history import STATE_FAULTS, a_history

pytestmark = pytest.mark.engine

SCENARIO = "smoke/padded-graph-rows"


def bisected(history, results, *words):
    """Search a history, and give what the command says as JSON."""
    ends = ("--good", history.shas[0], "--bad", history.shas[-1])
    where = ("--repo", str(history.repo), "--base", BUILD, "--results", str(results))
    done = CliRunner().invoke(cli, ["bisect", SCENARIO, *ends, *where, "--json", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def package():
    """The installed package of the release."""
    return look_at(named_build(BUILD).interpreter).package


@pytest.fixture
def results(tmp_path):
    """A results folder; builds that the answer keeps are removed with it."""
    yield tmp_path / "results"
    from hybridwatch.engine.own_builds import remove_build

    for name in load_builds(home()):
        if name.startswith("bisect-"):
            remove_build(home(), name)


def test_commit_that_broke_the_state_is_found_and_proven(tmp_path, package, results):
    (tmp_path / "repo").mkdir()
    history = a_history(tmp_path / "repo", package, STATE_FAULTS[0], seed=3, commits=4, broken=1)
    said = bisected(history, results)
    assert said["answer"]["culprit"]["name"] == history.culprit
    assert said["confirmation"]["holds"]
    assert {one["fix"]: one["is_cause"] for one in said["fixes"]} == {
        "padded-rows-prefilling": True
    }
    assert len(read_run(Path(said["confirmation"]["record"])).builds) == 2
