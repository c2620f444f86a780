"""The project as ``pip install`` of its wheel gives it: no checkout, an empty folder, a home."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
import zipfile

import pytest

from hybridwatch.scenarios.load import find
from tests.checkout import FIX, write_own_fix
from tests.engine.conftest import BUILD
from tests.shipped import ROOT
from tests.waiting import LIMIT_S, own_port, wait_until
from tests.wheels import LAB, build_wheel, install_wheel, share_packages

RESULTS = ROOT / "results"
PAGE = (ROOT / "docs" / "home.md").read_text(encoding="utf-8")
SHIPPED = len(find(ROOT / "scenarios", []))
KNOWN_BAD = "c3a4a83b"
MOST_BYTES = 22_000_000
"""The weights of the embedded models are 19 MB of it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def command(wheel, tmp_path_factory):
    return install_wheel(tmp_path_factory.mktemp("installed") / "environment", wheel)


@pytest.fixture(scope="module")
def call(command):
    """Run a verb as somebody who has the wheel and nothing else."""
    return calling(command)


def calling(command):
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}

    def run(folder, *words, status=0, limit_s=LIMIT_S):
        done = subprocess.run(
            [command, *map(str, words)],
            cwd=folder, env={**kept, "COLUMNS": "200"},
            capture_output=True, text=True, timeout=limit_s, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def home(call, tmp_path_factory):
    """A home that the wheel's command has made in an empty folder."""
    folder = tmp_path_factory.mktemp("empty")
    call(folder, "init", "mine")
    return folder / "mine"


def test_the_wheel_is_no_bigger_than_it_must_be_and_has_no_secret(wheel):
    assert wheel.stat().st_size < MOST_BYTES
    weights = sum(
        one.compress_size
        for one in zipfile.ZipFile(wheel).infolist()
        if one.filename.endswith(".safetensors")
    )
    told = re.search(r"The wheel has (\d+) MB.* models are (\d+)\.", PAGE)
    assert told is not None
    assert tuple(map(int, told.groups())) == (
        round(wheel.stat().st_size / 1e6),
        round(weights / 1e6),
    )
    names = zipfile.ZipFile(wheel).namelist()
    assert "hybridwatch/data/models/tiny-hybrid/model.safetensors" in names
    assert "hybridwatch/data/dashboard/.streamlit/config.toml" in names
    left_out = ("secrets.toml", "__pycache__", "egg-info", "tiny-hybrid/train.py", "/results/")
    assert [name for name in names if any(word in name for word in left_out)] == []


def test_without_a_home_engines_have_no_place_and_the_message_names_the_command(call, tmp_path):
    for words in (["engine", "list"], ["run", "smoke"]):
        assert "hybridwatch init DIR" in call(tmp_path, *words, status=2)


def test_what_only_reads_needs_no_home(call, tmp_path):
    assert f"{SHIPPED} scenarios are valid" in call(tmp_path, "scenarios", "--check")
    assert KNOWN_BAD in call(tmp_path, "records", "--results", RESULTS)
    compared = call(tmp_path, "compare", KNOWN_BAD, "--results", RESULTS, status=1)
    assert "accuracy.recall" in compared
    passed = call(tmp_path, "gate", KNOWN_BAD, "--results", RESULTS)
    assert "1 of 1 bug caught" in passed


def test_without_the_lab_its_verbs_say_what_brings_them(call, tmp_path):
    install = "pip install hybridwatch-lab\n"
    for verb in ("mutants", "fuzz", "gpu", "findings"):
        told = call(tmp_path, verb, status=2)
        assert told.startswith(f"hybridwatch: {verb}: is part of hybridwatch-lab")
        assert told.endswith(install)
        assert f"\n  {verb} " not in call(tmp_path, "--help")
    assert "No such command 'track'" in call(tmp_path, "engine", "track", status=2)
    assert "'mutants' is not one of" in call(tmp_path, "page", "mutants", status=2)


def test_the_labs_wheel_brings_its_verbs_its_screen_and_what_runs_in_an_engine(
    wheel, home, tmp_path_factory, tmp_path
):
    lab = build_wheel(tmp_path_factory.mktemp("lab"), LAB)
    names = zipfile.ZipFile(lab).namelist()
    inside = "hybridwatch_lab/engine/hybridwatch_engine_lab"
    assert {f"{inside}/studies/fix_cost.py", f"{inside}/mutants/first.toml"} <= set(names)
    call = calling(install_wheel(tmp_path / "environment", wheel, lab))
    verbs = re.findall(r"^  ([a-z]+) ", call(tmp_path, "--help"), re.MULTILINE)
    assert verbs[verbs.index("oracle") :][:3] == ["oracle", "mutants", "fuzz"]
    assert "--accelerator" in call(tmp_path, "engine", "track", "--help")
    assert "killed" in call(home, "mutants", "--show", "--results", RESULTS)
    call(tmp_path, "page", "mutants", "--results", RESULTS, "--out", tmp_path / "page.html")
    assert "unzeroed-state" in (tmp_path / "page.html").read_text()


def test_a_home_has_what_is_shipped_and_its_own(call, home):
    assert f"{SHIPPED + 1} scenarios are valid" in call(home, "scenarios", "--check")
    builds = json.loads(call(home, "engine", "list", "--json"))["builds"]
    assert {"cpu-0.27.1", "cuda-0.32.0"} < {one["name"] for one in builds}
    assert {one["state"] for one in builds} == {"missing"}


def test_a_build_that_is_not_installed_names_the_command_that_installs_it(call, home):
    line = call(home, "run", "mine/first", "--build", BUILD, status=2)
    assert f"hybridwatch engine install {BUILD}" in line


def page_of(port):
    """The dashboard's health, as soon as it answers."""

    def answer():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health") as found:
                return found.read().decode()
        except urllib.error.URLError:
            return ""

    return wait_until(answer, "an answer of the dashboard")


def shows_dashboard(command, folder, results):
    port = own_port()
    words = [command, "dashboard", "--results", results, "--port", port]
    with subprocess.Popen(
        [str(word) for word in words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        try:
            return page_of(port) == "ok"
        finally:
            server.terminate()


def test_the_dashboard_starts_without_a_checkout(command, tmp_path):
    assert shows_dashboard(command, tmp_path, RESULTS)


def test_a_page_is_written_without_a_checkout(call, tmp_path):
    call(tmp_path, "page", "overview", "--results", RESULTS, "--out", tmp_path / "page.html")
    assert "padded-graph-rows" in (tmp_path / "page.html").read_text()


@pytest.fixture(scope="module")
def borrowed(tmp_path_factory):
    """The environment of the installed release without our plugin, which the wheel has to bring."""
    environment = tmp_path_factory.mktemp("borrowed") / "environment"
    release = ROOT / ".engines" / BUILD
    subprocess.run(
        [release / "bin" / "python", "-m", "venv", "--without-pip", environment], check=True
    )
    (site,) = (release / "lib").glob("python3*/site-packages")
    share_packages(environment, site)
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def with_own_model(home, borrowed):
    """The home with a model that is not shipped: the shipped one with its weights disturbed."""
    ours = home / "models" / "my-hybrid"
    shutil.copytree(
        ROOT / "models" / "tiny-hybrid", ours, ignore=shutil.ignore_patterns("*.py", "recipe")
    )
    subprocess.run([borrowed, "-c", _DISTURB, ours / "model.safetensors"], check=True)
    scenario = home / "scenarios" / "mine" / "first.toml"
    text = scenario.read_text()
    scenario.write_text(text.replace('model = "tiny-hybrid"', 'model = "my-hybrid"'))
    assert scenario.read_text() != text
    return home


_DISTURB = """
import sys, torch
from safetensors.torch import load_file, save_file
weights = load_file(sys.argv[1])
torch.manual_seed(0)
for name in sorted(weights):
    if weights[name].ndim == 2:
        weights[name] += 0.02 * weights[name].std() * torch.randn_like(weights[name])
save_file(weights, sys.argv[1], metadata={"format": "pt"})
"""


@pytest.mark.engine
@pytest.mark.long(
    "what a user without a checkout does, on two engines: the plugin comes from the wheel"
)
def test_own_scenario_model_fault_and_fix_are_measured_and_judged(
    call, command, with_own_model, borrowed
):
    home = with_own_model
    call(home, "engine", "add", "borrowed", "--python", borrowed)
    made = call(home, "oracle", "make", "my-hybrid", "mine/first", "--build", "borrowed",
                limit_s=500)  # fmt: skip
    assert "20 requests in 2 trials, by transformers" in made
    sides = ("--build", "borrowed", "--build", "borrowed+slow-decay")
    call(home, "run", "mine/first", *sides, "--phases", "contract", limit_s=500)
    (record,) = (home / "results").rglob("records/*/*.json")
    compared = json.loads(call(home, "compare", "latest", "--json", status=1))
    counts = {one["metric"]: one for one in compared["comparisons"]}
    wrong = counts["contract.wrong_answers"]
    # The oracle is of this model: the engine without the fault answers as it says.
    assert wrong["baseline"]["values"] == [0, 0]
    assert wrong["verdict"] == "regression"
    assert "planted fault" in call(home, "records")
    assert "contract.wrong_answers" in call(home, "gate", "latest", status=1)
    assert shows_dashboard(command, home, home / "results")
    assert "slow-decay" in json.loads(record.read_text())["builds"][1]["label"]

    write_own_fix(home / "fixes")
    found = json.loads(call(home, "engine", "check", "borrowed", "--json"))["fixes"]
    assert (found[FIX]["state"], found[FIX]["changed"]) == ("present", False)
    without = f"borrowed~{FIX}"
    sides = ("--build", "borrowed", "--build", without)
    call(home, "run", "smoke/dummy-run", *sides, "--phases", "contract", limit_s=500)
    (record,) = {*(home / "results").rglob("records/*/*.json")} - {record}
    states = [build["fixes"][FIX] for build in json.loads(record.read_text())["builds"]]
    assert states == ["present", "reverted"]
    wrong = [one for one in json.loads(call(home, "compare", "latest", "--json", status=1))
             ["comparisons"] if one["metric"] == "contract.wrong_answers"]  # fmt: skip
    assert [one["verdict"] for one in wrong] == ["regression"]
