"""``hybridwatch bisect`` from commits to a record, with engines that are as their code says."""

import json
import re
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from hybridwatch.engines.builds import load_builds
from hybridwatch.engines.other_python import look_at
from hybridwatch.engines.own_builds import add_source
from hybridwatch.errors import EngineError
from hybridwatch.orchestration.bisect import measurer
from hybridwatch.orchestration.bisect.journal import read_answer
from hybridwatch.records.run import Phase
from hybridwatch.records.store import read_run
from hybridwatch.system.files import claimed
from tests.builders import a_build, a_run
from tests.checkout import EXAMPLE, a_clone, a_copy, commit, make_home, write
from tests.command_line import run_verb

SCENARIO = "smoke/padded"
CODE = ("worker.py", "half.py")
NUMBERS = count(1)
"""Ids of records: no two of a test are the same."""
BROKEN = "contract.padded_rows_prefilling"


class Engines:
    """Stands for ``run_session``: a build is as its file ``v1/worker.py`` says."""

    def __init__(self):
        self.started: list[str] = []

    def run(self, request):
        said = [self._code(side.spec) for side in request.sides]
        for side, code in zip(request.sides, said, strict=True):
            self.started.append(side.spec.name)
            if "dies" in code:
                raise EngineError("the engine did not come up", "RuntimeError: it dies\n")
        builds = tuple(a_build(side.label) for side in request.sides)
        if Phase.CONTRACT in request.phases:
            values = [{BROKEN: (7.0 if _number(code, "rows") > 2 else 0.0,)} for code in said]
            return replace(a_run(*values), builds=builds, id=f"{next(NUMBERS):08x}")
        blocks = request.scenario.trials.performance
        steady = [0.01 + 1e-5 * (at % 3) for at in range(blocks)]
        slower = [1 + _number(code, "slow") / 100 for code in said]
        times = [{"tpot": tuple(one * factor for one in steady)} for factor in slower]
        return replace(a_run(*times), builds=builds, id=f"{next(NUMBERS):08x}")

    def _code(self, spec):
        folder = look_at(spec.interpreter).package / "v1"
        return "".join((folder / name).read_text() for name in CODE if (folder / name).is_file())


def _number(code, name):
    found = re.search(rf"{name} = (\d+)", code)
    return int(found[1]) if found else 0


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A checkout with one installed release and one scenario."""
    root = make_home(tmp_path / "home", SCENARIO)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    return root


@pytest.fixture
def engines(monkeypatch):
    """Engines that start at once."""
    made = Engines()
    monkeypatch.setattr(measurer, "run_session", made.run)
    monkeypatch.setattr(measurer, "make_ready", lambda *_: None)
    return made


def a_history(folder, *codes):
    """A clone in which each commit changes the worker, and a file of its own."""
    clone = a_clone(folder)
    for number, code in enumerate(codes, start=1):
        files = {"vllm/v1/worker.py": code, f"vllm/v1/other_{number}.py": f"x = {number}\n"}
        commit(clone, f"Change {number} (#{100 + number})", files)
    return clone


def bisect(tmp_path, *words, good="1.0", bad="HEAD"):
    """Call the verb, and give its exit status and what it says as JSON."""
    ends = ("bisect", SCENARIO, "--good", good, "--bad", bad)
    where = ("--results", str(tmp_path / "results"), "--json")
    done = run_verb(*ends, *where, *words)
    return done, json.loads(done.stdout) if done.stdout else None


def test_commit_is_found_confirmed_and_recorded(home, engines, tmp_path):
    clone = a_history(tmp_path / "clone", *(f"rows = {rows}\n" for rows in (1, 2, 3, 4, 5)))
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0, done.output
    culprit = said["answer"]["culprit"]
    assert (culprit["title"], culprit["pull_request"]) == ("Change 3 (#103)", 103)
    assert culprit["author"] == "a"
    assert said["answer"]["metric"] == BROKEN
    assert "Change 3 (#103)" in done.stderr
    assert said["confirmation"]["seen"] == "0 -> 7"
    assert len(read_run(Path(said["confirmation"]["record"])).builds) == 2
    kept = {name for name in load_builds(home) if name.startswith("bisect-")}
    (search,) = {name.split("-")[1] for name in kept}
    assert kept == {f"bisect-{search}-{said['answer'][end][:10]}" for end in ("good", "bad")}
    again = f"hybridwatch bisect {SCENARIO} --good {said['answer']['good']} --bad "
    assert said["repeat"].startswith(again)
    assert "file: v1/worker.py" in done.stderr
    (tmp_path / "answer.json").write_text(done.stdout)
    found = read_answer(tmp_path / "answer.json")
    assert (found.scenario, found.confirmed) == (SCENARIO, True)
    assert [one.name for one in found.suspects] == [said["answer"]["bad"]]
    assert found.suspects[0].is_commit
    assert found.answer is not None
    assert (found.answer.interval, found.answer.certainty) == (None, None)


def test_second_call_is_refused_while_the_first_is_at_it(home, engines, tmp_path):
    clone = a_history(tmp_path / "clone", *(f"rows = {rows}\n" for rows in (1, 3)))
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0, done.output
    (journal,) = (tmp_path / "results" / "bisect").glob("*.json")
    with claimed(journal.with_suffix(".lock")):
        done, _ = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 2
    assert "another call is at this search" in done.stderr
    assert bisect(tmp_path, "--repo", clone)[1]["answer"] == said["answer"]


def test_second_call_measures_only_the_pair_again(home, engines, tmp_path):
    clone = a_history(tmp_path / "clone", *(f"rows = {rows}\n" for rows in (1, 2, 3, 4, 5)))
    bisect(tmp_path, "--repo", clone)
    first = len(engines.started)
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0
    assert "resuming with" in done.stderr
    assert len(engines.started) - first == 2
    assert said["answer"]["culprit"]["pull_request"] == 103
    _, said = bisect(tmp_path, "--repo", clone, "--anew")
    assert len(engines.started) - first > 4


def test_commit_next_to_one_that_dies_is_reported_by_its_file(home, engines, tmp_path):
    clone = a_clone(tmp_path / "clone")
    commit(clone, "Fine (#1)", {"vllm/v1/worker.py": "rows = 2\n"})
    commit(clone, "Half (#2)", {"vllm/v1/half.py": "dies = 1\n"})
    whole = {"vllm/v1/half.py": "x = 1\n", "vllm/v1/worker.py": "rows = 3\n"}
    commit(clone, "Break (#3)", whole)
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0, done.output
    assert said["answer"]["culprit"]["pull_request"] == 3


def test_change_that_is_not_there_is_the_answer(home, engines, tmp_path):
    clone = a_history(tmp_path / "clone", "rows = 1\n", "rows = 2\n")
    done, said = bisect(tmp_path, "--repo", clone, "--metric", BROKEN)
    assert done.exit_code == 1
    assert "the change is not there" in done.stderr
    assert (said["found"], said["answer"], said["repeat"]) == (False, None, None)
    assert [name for name in load_builds(home) if name.startswith("bisect-")] == []


def test_slower_commit_is_found_without_a_metric(home, engines, tmp_path):
    codes = (f"slow = {slow}\n" for slow in (0, 0, 6, 6, 6, 6))
    clone = a_history(tmp_path / "clone", *codes)
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0, done.output
    assert said["answer"]["metric"] == "tpot"
    assert said["answer"]["effect"] == pytest.approx(0.06, abs=0.005)
    low, high = said["answer"]["interval"]
    assert low < said["answer"]["effect"] < high
    assert 0.99 <= said["answer"]["certainty"] <= 1
    assert said["answer"]["culprit"]["pull_request"] == 103
    assert "#" * 30 in done.stderr


def test_engine_that_no_longer_starts_is_found(home, engines, tmp_path):
    clone = a_history(tmp_path / "clone", "rows = 1\n", "rows = 1\ndies = 1\n", "dies = 1\n")
    done, said = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 0, done.output
    assert said["answer"]["metric"] == "starts"
    assert said["answer"]["culprit"]["pull_request"] == 102
    assert said["confirmation"]["seen"] == "lives -> does not start"
    assert len(read_run(Path(said["confirmation"]["record"])).builds) == 1


def test_file_of_a_patch_is_found_without_a_clone(home, engines, tmp_path):
    add_source(home, "mine", a_copy(tmp_path, worker="rows = 3\n", a="x = 1\n", z="x = 1\n"))
    done, _said = bisect(tmp_path, good="tiny-1.0", bad="mine")
    assert done.exit_code == 0, done.output
    assert "file: v1/worker.py" in done.stderr
    assert "mine" in load_builds(home)  # ours are removed, theirs stay


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--metric", "contract"), "expected starts, alive or the id of a metric"),
        (("--metric", "accuracy.recall"), "contract.wrong_answers counts"),
        (("--bad", "nowhere"), "nowhere: expected a build, a release"),
    ],
)
def test_wrong_call_is_refused_before_anything_is_measured(home, engines, tmp_path, words, why):
    done = run_verb("bisect", SCENARIO, "--good", "1.0", "--bad", "1.0", *words, status=2)
    assert why in done.output
    assert engines.started == []


def test_group_is_no_scenario(home, engines, tmp_path):
    write(home, {"scenarios/smoke/other.toml": EXAMPLE})
    done = run_verb("bisect", "smoke", "--good", "1.0", "--bad", "1.0", status=2)
    assert "smoke: expected one scenario, found a group of 2" in done.output


LATER = """
[builds."tiny-{0}"]
like = "tiny-1.0"
release = "{0}"
"""


def declare(home, *releases):
    """Add releases that are not installed."""
    file = home / "engine" / "builds.toml"
    file.write_text(file.read_text() + "".join(LATER.format(release) for release in releases))


@pytest.mark.parametrize(
    ("bad", "names"), [("1.2", ("tiny-1.1", "tiny-1.2")), ("tiny-1.2+slow-step", ("tiny-1.2",))]
)
def test_an_end_that_is_not_installed_is_reported_first(home, engines, tmp_path, bad, names):
    declare(home, "1.1", "1.2")
    done, _ = bisect(tmp_path, good="tiny-1.0", bad=bad)
    assert done.exit_code == 2
    assert "expected both ends to be installed before anything" in done.stderr
    assert "tiny-1.2" in done.stderr
    assert "--install installs what is needed" in done.stderr
    assert all(f"hybridwatch engine install {name}" in done.stderr for name in names)
    assert engines.started == []


def test_an_installation_that_fails_fails_before_anything_is_measured(home, engines, tmp_path):
    declare(home, "1.1")
    file = home / "engine" / "builds.toml"
    file.write_text(f'{file.read_text()}python = "3.99"\n')
    done, _ = bisect(tmp_path, "--install", bad="1.1")
    assert done.exit_code == 2
    assert "3.99" in done.stderr
    assert engines.started == []


def test_a_commit_at_an_end_that_cannot_be_built_is_reported_before_anything_is_measured(
    home, engines, tmp_path
):
    clone = a_history(tmp_path / "clone", "rows = 1\n", "rows = 2\n")
    commit(clone, "Kernel (#3)", {"csrc/a.cpp": "int b;"})
    done, _ = bisect(tmp_path, "--repo", clone)
    assert done.exit_code == 2
    assert "the compiled parts and packages of tiny-1.0 do not fit it" in done.stderr
    assert engines.started == []
