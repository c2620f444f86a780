"""A pack of made-up wheels: made here, put together where there is no network."""

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import mkdtemp

import pytest

from hybridwatch.engines.builds import load_builds, named_build
from hybridwatch.errors import BuildError
from hybridwatch.system.home import HOME_VARIABLE, home
from hybridwatch_lab.gpu.pack.pack import read_left_out
from hybridwatch_lab.gpu.pack.resolve import ResolveQuestion, lock_lines, read_machine, resolve
from tests.command_line import run_verb
from tests.wheels import a_wheel, hashed

BUILDS = """\
[builds."cuda-1.0"]
release = "1.0"
accelerator = "cuda"
distribution = "vllm"
python = "3.11"
torch = "torch==2.11.0,!=2.11.0+cpu"
lock = "locks/cuda.txt"
"""
LOCK = (
    "vllm==1.0\nhuge==1.0\nonly_of_huge==1.0\ntorch==2.11.0,!=2.11.0+cpu\nneeded==1.0\n"
    "shared==2.0\njit==1.0\nthere==1.0\n"
)
PROJECT = """\
[project]
name = "hybridwatch"
version = "0.1.0"
dependencies = ["small>=1"]
[project.optional-dependencies]
measure = []
[project.scripts]
hybridwatch = "watch:main"
"""
LAB = """\
[project]
name = "hybridwatch-lab"
version = "0.1.0"

[project.entry-points."hybridwatch.commands"]
gpu = "verbs:GPU"
"""
PLUGIN = """\
[project]
name = "hybridwatch-engine"
version = "0.1.0"
[project.entry-points."vllm.general_plugins"]
hybridwatch = "watched:register"
"""
PACK = """\
[[leave_out]]
id = "compiler"
why = "compiles kernels that no model of ours has"
packages = ["huge"]
[[leave_out]]
id = "other-gpus"
why = "for other GPUs"
files = ["vllm:vllm/other_*.so"]
[[leave_out]]
id = "spare"
why = "goes when asked"
files = ["vllm:vllm/spare.so"]
usual = false
[[as_it_is]]
packages = ["jit"]
why = "any version does"
"""
VLLM: dict[str, str | bytes] = {
    "vllm/__init__.py": "import shared, needed\n__version__ = '1.0'\n",
    "vllm/v1/engine/async_llm.py": "",
    "vllm/entrypoints/openai/api_server.py": "",
    "vllm/kernels.so": b"k" * 50_000,
    "vllm/other_gpu.so": b"o" * 50_000,
    "vllm/spare.so": b"s" * 50_000,
    "vllm-1.0.data/scripts/vllm-tool": "#!python\nprint('tool')\n",
    "vllm-1.0.data/headers/x.h": "",
    "vllm-1.0.dist-info/entry_points.txt": "[console_scripts]\nvllm = vllm:main\n",
}
NEEDS = ("torch==2.11.0", "needed", "shared>=2", "huge", "jit==1.0", "there>=1")
OTHERWISE = ("--keep", "compiler", "--leave-out", "spare", "--piece-mb", "0.001")
"""What is independent of each other is asked of one pack: each makes pip think again."""
MACHINE = "torch==2.11.0\nshared==1.0\njit==3.0\nthere==1.0\nunrelated==7\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    """A folder with everything that a package index would have."""
    folder: Path = tmp_path_factory.mktemp("index")
    a_wheel(folder, "vllm", files=VLLM, requires=NEEDS)
    for name in ("needed", "huge", "only_of_huge", "jit", "there", "small"):
        a_wheel(folder, name, requires=("only_of_huge",) if name == "huge" else ())
    for version in ("1.0", "2.0", "3.0"):
        a_wheel(folder, "shared", version)
    a_wheel(folder, "torch", "2.11.0")
    return folder


@pytest.fixture
def checkout(tmp_path, index, monkeypatch) -> Path:
    root: Path = tmp_path / "checkout"
    (root / "engine" / "locks").mkdir(parents=True)
    (root / "locks").mkdir()
    (root / "src").mkdir()
    (root / "engine" / "src").mkdir()
    (root / "engine" / "builds.toml").write_text(BUILDS)
    (root / "engine" / "pack.toml").write_text(PACK)
    (root / "engine" / "pyproject.toml").write_text(PLUGIN)
    (root / "engine" / "locks" / "cuda.txt").write_text(hashed(LOCK, index))
    (root / "locks" / "harness.txt").write_text(hashed("small==1.0\n", index))
    (root / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setenv(HOME_VARIABLE, str(root))
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Packs that a test has made already: pip takes seconds to think.

    Each in a folder of its own: one that is taken out must not free its folder for the next.
    """
    return tmp_path_factory.mktemp("made"), {}


@pytest.fixture
def pack(checkout, index, made, tmp_path):
    """Make a pack with the command, or take the same one of an earlier test."""

    def call(*words: str, machine: str = MACHINE, anew: bool = False):
        folder, answers = made
        key = (words, machine)
        if anew or key not in answers:
            out = Path(mkdtemp(dir=folder))
            (tmp_path / "machine.txt").write_text(machine)
            paths = ["--for", str(tmp_path / "machine.txt"), "--out", str(out)]
            links = ["--find-links", str(index), "--build", "cuda-1.0"]
            answers[key] = run_verb("gpu", "pack", *paths, *links, *words), out
        answer, out = answers[key]
        if (out / "carry").exists():
            shutil.copytree(out / "carry", tmp_path / "out" / "carry", dirs_exist_ok=True)
        return answers.pop(key)[0] if anew else answer

    return call


@pytest.fixture
def machine(tmp_path, index):
    """The Python of a machine that has what MACHINE says, itself a virtual environment."""
    venv.create(tmp_path / "there", symlinks=True)
    (site,) = (tmp_path / "there" / "lib").glob("python3*/site-packages")
    torch = "__version__ = '2.11.0'\nclass cuda:\n    device_count = staticmethod(lambda: 0)\n"
    had = {
        "torch": a_wheel(tmp_path / "had", "torch", "2.11.0", {"torch.py": torch}),
        "shared": index / "shared-1.0-py3-none-any.whl",
        "jit": a_wheel(tmp_path / "had", "jit", "3.0"),
        "there": index / "there-1.0-py3-none-any.whl",
    }
    for wheel in had.values():
        shutil.unpack_archive(wheel, site, "zip")
    return tmp_path / "there" / "bin" / "python"


@pytest.fixture
def carried(tmp_path):
    return tmp_path / "out" / "carry"


def manifest(carried: Path) -> dict[str, object]:
    told: dict[str, object] = json.loads((carried / "pack.json").read_text())
    return told


def packed(carried: Path) -> dict[str, str]:
    listed = json.loads((carried / "pack.json").read_text())["packages"]
    return {one["name"]: one["version"] for one in listed}


def put_together(machine: Path, carried: Path, into: Path, *words: str):
    """Run the script as on the machine: no network, where the system lets us take it away."""
    alone = ["unshare", "-r", "-n"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    script = str(carried / "put-together.sh")
    return subprocess.run(
        [*alone, "bash", script, "--into", str(into), *words],
        env={
            "PYTHON": str(machine),
            "PATH": "/usr/bin:/bin",
            "PIP_INDEX_URL": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def files_of(root: Path) -> set[Path]:
    return {path.relative_to(root) for path in root.rglob("*")}


def test_only_what_the_machine_lacks_is_packed(pack, carried) -> None:
    answer = pack()
    assert answer.exit_code == 0, answer.output
    assert packed(carried) == {"vllm": "1.0", "needed": "1.0", "shared": "2.0", "small": "1.0"}


def test_a_package_in_a_version_that_does_not_do_is_replaced_and_named(pack) -> None:
    assert "shared 2.0 instead of 1.0: vllm 1.0 needs shared>=2" in pack().output


def test_a_version_that_the_machine_has_stays_where_any_will_do(pack, carried) -> None:
    pack()
    assert "jit" not in packed(carried)
    assert manifest(carried)["left_out"]


def test_what_only_a_left_out_package_requires_is_left_out(pack, carried) -> None:
    pack()
    assert not {"huge", "only-of-huge"} & packed(carried).keys()
    pack(*OTHERWISE)
    assert {"huge", "only-of-huge"} <= packed(carried).keys()


def test_no_piece_is_larger_than_asked(pack, carried) -> None:
    pack(*OTHERWISE)
    pieces = sorted(carried.glob("cuda-1.0.*"))
    assert len(pieces) > 2
    assert all(path.stat().st_size <= 1000 for path in pieces)


def test_files_that_are_left_out_are_not_in_the_environment(
    pack, machine, carried, tmp_path
) -> None:
    pack(*OTHERWISE)
    assert put_together(machine, carried, tmp_path / "gpu").returncode == 0
    (site,) = (tmp_path / "gpu" / "cuda-1.0" / "env" / "lib").glob("python3*/site-packages")
    assert {path.name for path in (site / "vllm").glob("*.so")} == {"kernels.so"}
    (info,) = site.glob("vllm-*.dist-info")
    listed = (info / "RECORD").read_text()
    assert "vllm/kernels.so" in listed  # else files that stayed behind are files that were changed
    assert "other_gpu.so" not in listed
    assert list((site / "vllm" / "__pycache__").glob("__init__.*.pyc"))


def test_the_environment_is_made_without_a_network(pack, machine, carried, tmp_path) -> None:
    pack()
    done = put_together(machine, carried, tmp_path / "gpu")
    assert done.returncode == 0, done.stderr
    assert "torch 2.11.0, vLLM 1.0, 0 GPU(s)" in done.stdout
    code = "import shared, jit, there, vllm; print(shared.VERSION, jit.VERSION, there.VERSION)"
    python = tmp_path / "gpu" / "cuda-1.0" / "env" / "bin" / "python"
    seen = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.split() == ["2.0", "3.0", "1.0"]  # what was packed goes first


def test_scripts_of_wheels_start_the_environments_python(pack, machine, carried, tmp_path) -> None:
    pack()
    put_together(machine, carried, tmp_path / "gpu")
    folder = tmp_path / "gpu" / "cuda-1.0" / "env" / "bin"
    for name in ("vllm", "vllm-tool"):
        assert (folder / name).read_text().startswith(f"#!{folder / 'python'}\n")
    told = subprocess.run([folder / "vllm-tool"], capture_output=True, text=True, check=True)
    assert told.stdout == "tool\n"


def test_planted_damage_is_found_and_named(pack, machine, carried, tmp_path) -> None:
    pack(*OTHERWISE)
    bad = carried / "cuda-1.0.002"
    content = bytearray(bad.read_bytes())
    content[500] ^= 1
    bad.write_bytes(content)
    done = put_together(machine, carried, tmp_path / "gpu")
    assert done.returncode == 1
    assert "cuda-1.0.002: damaged" in done.stderr
    assert not (tmp_path / "gpu" / "cuda-1.0" / "env").exists()


def test_pieces_may_come_in_several_deliveries(pack, machine, carried, tmp_path) -> None:
    pack(*OTHERWISE)
    pieces = sorted(path.name for path in carried.glob("cuda-1.0.*"))
    for number, name in enumerate(pieces, 1):
        delivery = tmp_path / "deliveries" / name
        delivery.mkdir(parents=True)
        for file in ("pack.json", "put-together.sh", "put_together.py", name):
            shutil.copy(carried / file, delivery)
        done = put_together(machine, delivery, tmp_path / "gpu")
        if number == len(pieces):
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1
            assert f"{number} of {len(pieces)} pieces" in done.stderr
            assert f"still missing: {', '.join(pieces[number:])}" in done.stderr


def test_an_interrupted_environment_is_made_again_and_a_whole_one_is_not(
    pack, machine, carried, tmp_path
) -> None:
    pack()
    environment = tmp_path / "gpu" / "cuda-1.0" / "env"
    environment.mkdir(parents=True)
    (environment / "half").touch()
    put_together(machine, carried, tmp_path / "gpu")
    assert not (environment / "half").exists()
    (environment / "mine").touch()
    assert "the environment is there" in put_together(machine, carried, tmp_path / "gpu").stdout
    assert (environment / "mine").exists()


def test_nothing_is_written_into_a_checkout(pack, machine, carried, checkout, tmp_path) -> None:
    pack()
    before = files_of(checkout)
    refused = put_together(machine, carried, checkout / "env")
    assert refused.returncode == 2
    assert "outside every checkout" in refused.stderr
    done = put_together(machine, carried, tmp_path / "gpu", "--checkout", str(checkout))
    assert done.returncode == 0, done.stderr
    assert files_of(checkout) == before


def test_the_environment_runs_harness_and_plugin_from_the_checkout(
    pack, machine, carried, checkout, tmp_path
) -> None:
    (checkout / "src" / "watch.py").write_text("def main():\n    print('watching')\n")
    (checkout / "engine" / "src" / "watched.py").write_text("def register():\n    return 7\n")
    (checkout / "lab" / "src").mkdir(parents=True)
    (checkout / "lab" / "pyproject.toml").write_text(LAB)
    (checkout / "lab" / "src" / "verbs.py").write_text("GPU = 8\n")
    pack()
    put_together(machine, carried, tmp_path / "gpu", "--checkout", str(checkout))
    folder = tmp_path / "gpu" / "cuda-1.0" / "env" / "bin"
    told = subprocess.run([folder / "hybridwatch"], capture_output=True, text=True, check=True)
    assert told.stdout == "watching\n"
    code = (
        "from importlib.metadata import entry_points as e, version as v\n"
        "(one,) = e(group='vllm.general_plugins'); print(one.load()(), v('hybridwatch-engine'))\n"
        "(one,) = e(group='hybridwatch.commands'); print(one.load())"
    )
    seen = subprocess.run(
        [folder / "python", "-c", code], capture_output=True, text=True, check=True
    )
    assert seen.stdout.split() == ["7", "0.1.0", "8"]


def test_the_check_names_what_the_machine_lacks(pack, machine, carried, tmp_path) -> None:
    pack(machine=MACHINE + "needed==1.0\n")  # which the machine then does not have
    done = put_together(machine, carried, tmp_path / "gpu", "--no-check")
    assert done.returncode == 0
    done = put_together(machine, carried, tmp_path / "gpu")
    assert done.returncode == 1
    assert "lacks needed 1.0: not there" in done.stdout
    assert "lacks import vllm: ModuleNotFoundError: No module named 'needed'" in done.stdout


def test_the_check_takes_any_version_where_any_is_good(pack, machine, carried, tmp_path) -> None:
    pack(machine=MACHINE.replace("jit==3.0", "jit==2.0"))  # the machine has 3.0
    done = put_together(machine, carried, tmp_path / "gpu")
    assert (done.returncode, "jit" in done.stdout) == (0, False)


def test_another_python_is_refused(pack, machine, carried, tmp_path) -> None:
    pack()
    told = manifest(carried) | {"python": "3.7"}
    (carried / "pack.json").write_text(json.dumps(told))
    done = put_together(machine, carried, tmp_path / "gpu")
    assert done.returncode == 2
    assert "the pack is for Python 3.7" in done.stderr


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("torch==2.10.0\n", "needs torch==2.11.0,!=2.11.0+cpu on the machine, found torch 2.10.0"),
        ("torch==2.11.0+cpu\n", "found torch 2.11.0+cpu"),
        ("numpy==2.4.6\n", "found none"),
    ],
)
def test_another_torch_is_refused(pack, listed, words) -> None:
    answer = pack(machine=listed)
    assert answer.exit_code == 2
    assert words in answer.output


def test_another_torch_is_taken_if_that_is_asked_for(pack, carried) -> None:
    answer = pack("--any-torch", machine=MACHINE.replace("torch==2.11.0", "torch==2.10.0"))
    assert answer.exit_code == 0, answer.output
    assert "torch" not in packed(carried)
    counted_on = json.loads((carried / "pack.json").read_text())["counted_on"]
    assert counted_on["torch"] == ""


def test_requirements_that_contradict_each_other_are_named(pack, checkout) -> None:
    (checkout / "engine" / "locks" / "cuda.txt").write_text(
        LOCK.replace("needed==1.0", "needed==9")
    )
    answer = pack(anew=True)
    assert answer.exit_code == 2
    assert "pip finds no set of packages" in answer.output
    assert "vllm 1.0 depends on needed" in answer.output
    assert "constraint) needed==9" in answer.output


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (r"(needed==1\.0 .*\n +--hash=sha256:)\w{4}", r"\g<1>0000", "DO NOT MATCH THE HASHES"),
        (r"(needed==1\.0) .*\n.*", r"\1", "Hashes are required in --require-hashes mode"),
    ],
)
def test_a_wheel_with_another_hash_or_none_is_not_packed(
    pack, carried, checkout, old, new, told
) -> None:
    lock = checkout / "engine" / "locks" / "cuda.txt"
    lock.write_text(re.sub(old, new, lock.read_text()))
    answer = pack(anew=True)
    assert answer.exit_code == 2
    assert told in answer.output
    assert "    needed==1.0 " in answer.output
    assert not carried.exists()


def test_a_build_for_cpus_is_refused(pack, checkout) -> None:
    text = BUILDS.replace('accelerator = "cuda"', 'accelerator = "cpu"')
    (checkout / "engine" / "builds.toml").write_text(text)
    answer = pack(anew=True)
    assert answer.exit_code == 2
    assert "expected a build for CUDA" in answer.output


def test_the_same_machine_gives_the_same_pieces(pack, carried) -> None:
    pack()
    first = manifest(carried)
    pack(anew=True)
    assert manifest(carried) == first


def test_every_entry_of_our_own_list_says_why() -> None:
    found = read_left_out(home())
    assert len({entry.id for entry in found.entries}) == len(found.entries)
    assert all(len(entry.why) > 20 and (entry.packages or entry.files) for entry in found.entries)
    with pytest.raises(BuildError, match="nothing is called"):
        read_left_out(home(), keep=["no-such-thing"])


def test_no_engine_of_a_cuda_build_takes_flashinfer_which_is_left_out() -> None:
    builds = [build for build in load_builds().values() if build.accelerator == "cuda"]
    assert builds
    assert {build.flags.get("gdn-prefill-backend") for build in builds} == {"triton"}


@pytest.mark.slow  # a package index answers hundreds of questions; it changes with builds.toml only
@pytest.mark.timeout(1200)
def test_our_builds_resolve_for_a_machine_with_torch_alone(tmp_path) -> None:
    """The index is asked, nothing of size is fetched: what pip says of a real build."""
    path = tmp_path / "machine.txt"
    path.write_text("torch 2.11.0+cu130\ntorchvision 0.26.0\ntorchaudio 2.11.0\ntriton 3.6.0\n")
    build, left_out = named_build("cuda-0.23.0"), read_left_out(home())
    wanted = resolve(
        ResolveQuestion(
            requirements=[f"{build.distribution}=={build.release}"],
            machine=read_machine(path),
            lock=lock_lines(build.lock_file.read_text()),
            left_out=left_out.packages,
            as_it_is=left_out.as_it_is,
            python=Path(sys.executable),
        )
    )
    names = {one.name for one in wanted}
    assert {"vllm", "transformers", "xgrammar", "uvicorn"} <= names
    assert not names & {"torch", "triton", "flashinfer-cubin", "nvidia-cuda-nvcc", "z3-solver"}
    assert {one.version for one in wanted if one.name == "vllm"} == {"0.23.0"}
