"""``hybridwatch bisect`` over real commits of a release's Python, with real engines."""

import json
from pathlib import Path

import pytest

from hybridwatch.engines.builds import load_builds, named_build
from hybridwatch.engines.other_python import look_at
from hybridwatch.engines.own_builds import remove_build
from hybridwatch.records.store import read_run
from hybridwatch.system.home import home
from tests.command_line import run_verb
from tests.engine.conftest import BUILD
from tests.engine.planted_history import SLOW_STEP, STATE_FAULTS, a_history

pytestmark = pytest.mark.engine

SCENARIO = "smoke/padded-graph-rows"


MOST = 6
"""Answers that 64 commits take."""


def bisected(history, results, *words, found=True):
    """Search a history; gives the JSON. With ``found`` it is one change, else it may be a range."""
    ends = ("--good", history.shas[0], "--bad", history.shas[-1])
    where = ("--repo", str(history.repo), "--base", BUILD, "--results", str(results))
    done = run_verb("bisect", SCENARIO, *ends, *where, "--json", *words)
    assert done.exit_code in ({0} if found else {0, 1}), done.output
    return json.loads(done.stdout)


@pytest.fixture
def package():
    """The installed package of the release."""
    return look_at(named_build(BUILD).interpreter).package


@pytest.fixture
def results(tmp_path):
    """A results folder; builds that the answer keeps are removed with it."""
    yield tmp_path / "results"
    for name in load_builds(home()):
        if name.startswith("bisect-"):
            remove_build(home(), name)


# Slow: eight starts of engines.
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_commit_that_broke_the_state_is_found_and_proven(tmp_path, package, results):
    (tmp_path / "repo").mkdir()
    history = a_history(tmp_path / "repo", package, STATE_FAULTS[0], seed=3, commits=2, broken=0)
    said = bisected(history, results)
    assert said["answer"]["culprit"]["name"] == history.culprit
    assert said["confirmation"]["holds"]
    assert {one["fix"]: one["is_cause"] for one in said["fixes"]} == {
        "padded-rows-prefilling": True
    }
    assert len(read_run(Path(said["confirmation"]["record"])).builds) == 2


# 64 commits say what four say, at more places; one history stands for ten.
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.hours if seed else pytest.mark.slow)
        for seed in range(10)
    ],
)
def test_commit_among_64_is_found_whatever_does_not_start(tmp_path, package, results, seed):
    (tmp_path / "repo").mkdir()
    fault = STATE_FAULTS[seed % len(STATE_FAULTS)]
    history = a_history(tmp_path / "repo", package, fault, seed=seed)
    said = bisected(history, results)
    assert said["answer"]["culprit"]["name"] == history.culprit
    (search,) = said["searches"]
    answered = [one for one in search["measurements"] if one["answer"] != "skipped"]
    assert len(answered) <= MOST
    assert set(search["skipped"]) <= set(history.broken)


# A search by times takes a quarter of an hour.
@pytest.mark.hours
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1, 11))
def test_slower_commit_among_64_is_in_what_is_named(tmp_path, package, results, seed):
    (tmp_path / "repo").mkdir()
    history = a_history(tmp_path / "repo", package, SLOW_STEP, seed=seed)
    words = ("--metric", "duet_cpu_time", "--max-minutes", "90")
    said = bisected(history, results, *words, found=False)
    named = {one["name"] for one in said["answer"]["suspects"]}
    assert history.culprit in named
    assert len(named) < len(history.shas) / 2
