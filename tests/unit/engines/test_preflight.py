"""What does not fit a build is told in one line before anything is made; no GPU is needed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pynvml
import pytest

from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.install import install
from hybridwatch.engines.preflight import (
    SHARED_MEMORY,
    Needs,
    cuda_version,
    free_memory,
    require_gpu,
    require_machine,
    require_python,
    require_wheels,
)
from hybridwatch.errors import BuildError, MachineError
from hybridwatch.scenarios.load import load_scenario
from tests.checkout import make_checkout
from tests.command_line import run_verb
from tests.pretended_nvml import Card, pretend
from tests.wheels import hashed

CHECKOUT = Path(__file__).parents[3]
CUDA = """
[builds."huge-1.0"]
release = "1.0"
accelerator = "cuda"
distribution = "vllm"
python = "3.11"
torch = "torch==2.11.0,!=2.11.0+cpu"
lock = "locks/huge.txt"
"""
LOCK = """\
cuda-toolkit==13.0.2
six==1.17.0
torch==2.11.0,!=2.11.0+cpu
vllm==1.0
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildSpec:
    root = tmp_path / "checkout"
    make_checkout(root, "smoke/example")
    (root / "engine" / "locks" / "huge.txt").write_text(LOCK)
    with (root / "engine" / "builds.toml").open("a") as file:
        file.write(CUDA)
    monkeypatch.setenv("HYBRIDWATCH_HOME", str(root))
    return named_build("huge-1.0", root)


def have_gpu(monkeypatch, *cards: Card, cuda: int = 13020) -> None:
    library = pretend(monkeypatch, *cards)
    monkeypatch.setattr(library, "nvmlSystemGetCudaDriverVersion_v2", lambda: cuda, raising=False)


def wheels(folder: Path, *names: str) -> Path:
    """Wheels that hold nothing but their metadata."""
    folder.mkdir()
    for name in names:
        project, version = name.split("-")[:2]
        info = f"{project}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
            archive.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
            )
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")
    return folder


NEEDED = "huge-1.0 needs an NVIDIA driver for CUDA 13.0 (580 or newer); "


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
            'no NVIDIA driver on this machine: NVML says "NVML Shared Library Not Found"',
        ),
        (
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
            'no NVIDIA driver on this machine: NVML says "Driver Not Loaded"',
        ),
    ],
)
def test_without_a_driver_nothing_is_made_measured_or_hidden(build, monkeypatch, code, line):
    pretend(monkeypatch, broken=code)
    for words in (["engine", "install", "huge-1.0"], ["run", "smoke", "--build", "huge-1.0"]):
        assert run_verb(*words, status=2).stderr == f"hybridwatch: {NEEDED}{line}\n"
    assert not (build.home / ".engines").exists()


def test_a_driver_that_is_too_old_is_reported_with_its_number(build, monkeypatch):
    pretend(monkeypatch, Card())
    with pytest.raises(BuildError) as caught:
        require_gpu(build)
    assert str(caught.value) == f"{NEEDED}this is driver 570.133.20, which goes up to CUDA 12.8"


@pytest.mark.parametrize("cuda", [13000, 13020, 14000])
def test_a_driver_of_the_same_major_version_or_a_later_one_will_do(build, monkeypatch, cuda):
    have_gpu(monkeypatch, Card(), cuda=cuda)
    require_gpu(build)


def test_a_driver_that_shows_no_gpu_is_reported(build, monkeypatch):
    have_gpu(monkeypatch, Card())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(BuildError, match=r"needs an NVIDIA GPU; driver \S+ shows none to this p"):
        require_gpu(build)


def test_where_the_lock_names_no_cuda_any_driver_will_do(build, monkeypatch):
    build.lock_file.write_text("six==1.17.0\n")
    assert cuda_version(build) is None
    pretend(monkeypatch, Card())
    require_gpu(build)
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    with pytest.raises(BuildError, match=r"^huge-1\.0 needs an NVIDIA driver; no NVIDIA driver"):
        require_gpu(build)


def test_a_build_for_cpus_asks_for_no_driver(build, monkeypatch):
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    require_gpu(named_build("tiny-1.0", build.home))


def test_with_a_gpu_it_is_the_missing_environment_that_is_reported(build, monkeypatch):
    have_gpu(monkeypatch, Card())
    with pytest.raises(BuildError, match="is missing; run: hybridwatch engine install huge-1"):
        require_installed(build)


@pytest.mark.parametrize(
    ("oldest", "newest", "expected"),
    [
        ("3.99", None, r"3\.99 or newer"),
        ("3.10", "3.10", r"3\.10 to 3\.10"),
    ],
)
def test_another_python_is_reported(build, monkeypatch, oldest, newest, expected):
    have_gpu(monkeypatch, Card())
    unfit = build.model_copy(update={"python": oldest, "newest_python": newest})
    with pytest.raises(BuildError, match=rf"^huge-1\.0 needs Python {expected}; this is 3\.\d"):
        install(unfit, say=lambda _: None)
    require_python(build)


def test_a_folder_that_lacks_a_wheel_is_reported_with_its_name(build, monkeypatch, tmp_path):
    have_gpu(monkeypatch, Card())
    folder = wheels(
        tmp_path / "wheels",
        "torch-2.11.0-py3-none-any",
        "cuda_toolkit-13.0.2-py3-none-any",
        "vllm-1.0-py3-none-any",
    )
    build.lock_file.write_text(hashed(LOCK, folder))
    words = ["engine", "install", "huge-1.0", "--find-links", str(folder)]
    told = run_verb(*words, status=2)
    (line,) = told.stderr.splitlines()
    assert line.startswith("hybridwatch: huge-1.0 needs a wheel of six==1.17.0 for Python 3.")
    assert line.endswith(f"; in {folder} there is none")
    assert not build.environment.exists()


def test_a_torch_for_cpus_is_reported_before_anything_is_made(build, monkeypatch, tmp_path):
    have_gpu(monkeypatch, Card())
    folder = wheels(
        tmp_path / "wheels",
        "torch-2.11.0+cpu-py3-none-any",
        "six-1.17.0-py3-none-any",
        "cuda_toolkit-13.0.2-py3-none-any",
        "vllm-1.0-py3-none-any",
    )
    build.lock_file.write_text(hashed(LOCK, folder))
    told = run_verb("engine", "install", "huge-1.0", "--find-links", folder, status=2)
    assert "needs a wheel of torch===2.11.0 for Python 3." in told.stderr
    assert told.stderr.endswith(f"; in {folder} there is 2.11.0+cpu\n")
    assert not build.environment.exists()


def test_every_cuda_build_of_ours_says_what_its_torch_is_made_for():
    found = {
        build.name: cuda_version(build)
        for build in load_builds(CHECKOUT).values()
        if build.accelerator == "cuda"
    }
    assert found
    assert {version[0] for version in found.values() if version is not None} == {13}
    assert None not in found.values()


def test_of_many_other_versions_the_newest_are_reported(build, tmp_path):
    names = (f"six-1.{minor}-py3-none-any" for minor in range(8))
    folder = wheels(tmp_path / "wheels", *names)
    with pytest.raises(BuildError, match=r"there is 1\.3, 1\.4, 1\.5, 1\.6, 1\.7$"):
        require_wheels(build, ("six==1.17.0",), [folder])


ROOT = Path(__file__).parents[3]
GIB, MIB = 1024**3, 1024**2
FEW = Needs(ports=1, memory=1, shared=1, temporary=1)
UP = "ip link set lo up"
NO_IPV6 = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1"
FEW_PORTS = "sysctl -qw net.ipv4.ip_local_port_range='60000 60003'"

MAKE_READY = """
import sys
from pathlib import Path
from hybridwatch.engines.builds import parse_label
from hybridwatch.errors import MachineError
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.scenarios.load import load_scenario
root = Path("scenarios")
scenario = load_scenario(root / "smoke" / "padded-graph-rows.toml", root)
try:
    make_ready(scenario, [parse_label("cpu-0.27.1")], Path("models"))
except MachineError as error:
    print(error)
"""


def in_namespace(*setup: str, **variables: str) -> str:
    """What a run says of a machine with a network and mounts of its own, which come from setup."""
    separate = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-ec"]
    if subprocess.run([*separate, UP], capture_output=True, check=False).returncode != 0:
        pytest.skip("this kernel, or a container, lets us make no namespaces")
    script = "\n".join([*setup, 'exec "$@"'])
    done = subprocess.run(
        [*separate, script, "sh", sys.executable, "-c", MAKE_READY],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_this_machine_is_fit() -> None:
    require_machine(FEW)


def test_a_machine_of_nothing_but_loopback_is_fit() -> None:
    assert in_namespace(UP) == ""


def test_no_engine_needs_ipv6() -> None:
    assert in_namespace(UP, NO_IPV6) == ""


def test_missing_loopback_is_reported() -> None:
    (line,) = in_namespace("true").splitlines()
    assert 'expected to reach 127.0.0.1, found "Network is unreachable"' in line
    assert "ip link set lo up" in line


def test_few_ports_are_counted() -> None:
    (line,) = in_namespace(UP, FEW_PORTS).splitlines()
    assert "free ones on 127.0.0.1, found 4" in line
    assert "net.ipv4.ip_local_port_range is 60000 to 60003" in line


def test_small_shared_memory_is_reported_with_both_sizes() -> None:
    (line,) = in_namespace(UP, "mount -t tmpfs -o size=64k none /dev/shm").splitlines()
    assert f"{SHARED_MEMORY}: expected " in line
    assert "free, found 64 KiB" in line
    assert "--shm-size=" in line


def test_full_shared_memory_is_reported() -> None:
    fill = "head -c 32M /dev/zero > /dev/shm/filler || true"
    said = in_namespace(UP, "mount -t tmpfs -o size=32m none /dev/shm", fill)
    assert f"{SHARED_MEMORY}: expected " in said
    assert "found 0 KiB" in said


def test_full_temporary_folder_is_reported(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=1m none {tmp_path}"
    (line,) = in_namespace(UP, mount, TMPDIR=str(tmp_path)).splitlines()
    assert f"temporary folder {tmp_path}: expected " in line
    assert "TMPDIR" in line


def test_everything_that_is_missing_is_reported_at_once() -> None:
    said = in_namespace("mount -t tmpfs -o size=64k none /dev/shm")
    told = [line.split(": ")[1] for line in said.splitlines()]
    assert told == ["loopback interface", str(SHARED_MEMORY)]


def test_memory_that_is_missing_is_reported_with_both_sizes() -> None:
    with pytest.raises(MachineError, match=r"memory: expected 999999\.0 GiB free .*found .* GiB"):
        require_machine(Needs(ports=1, memory=999999 * GIB, shared=1, temporary=1))


def test_needs_grow_with_builds_ranks_and_pairs() -> None:
    build = load_builds(ROOT)["cpu-0.27.1"]

    def needs(name: str, builds: int) -> Needs:
        scenario = load_scenario(ROOT / "scenarios" / f"{name}.toml", ROOT / "scenarios")
        return Needs.of(scenario, [build] * builds)

    one = needs("smoke/padded-graph-rows", 1)
    assert one.memory > GIB  # the cache that the build's env asks for, and the process
    for twice in (
        needs("smoke/padded-graph-rows", 2),
        needs("curated/dp-dummy-run", 1),
        needs("smoke/nixl-disagg", 1),
    ):
        assert (twice.memory, twice.shared) == (2 * one.memory, 2 * one.shared)
        assert twice.ports > one.ports


def group(folder: Path, limit: int, used: int, given_back: int, *, version: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }
    most, now, statistic = names[version]
    (folder / most).write_text(f"{limit}\n")
    (folder / now).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{statistic} {given_back}\n")


@pytest.mark.parametrize(
    ("version", "own", "folder"),
    [
        (2, "0::/box/inner\n", "box"),
        (2, "0::/../elsewhere\n", ""),
        (1, "4:memory:/box\n0::/\n", "memory/box"),
    ],
    ids=["of a parent", "seen from a container", "version 1"],
)
def test_free_memory_is_what_the_control_group_leaves(tmp_path, version, own, folder) -> None:
    (tmp_path / "own").write_text(own)
    group(tmp_path / folder, 300 * MIB, 200 * MIB, 50 * MIB, version=version)
    free = free_memory(tmp_path / "own", tmp_path)
    assert free.bytes == 150 * MIB
    assert str(tmp_path / folder) in free.where


def test_without_a_limit_the_machine_is_the_bound(tmp_path) -> None:
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path / "own", tmp_path).where == "of the machine"
