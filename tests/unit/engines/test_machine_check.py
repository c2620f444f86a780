"""What the machine lacks is told in a line; the lack is real, made in namespaces of the kernel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybridwatch.engines.builds import load_builds
from hybridwatch.engines.preflight import SHARED_MEMORY, Needs, free_memory, require_machine
from hybridwatch.errors import MachineError
from hybridwatch.scenarios.load import load_scenario

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


def test_missing_loopback_is_told() -> None:
    (line,) = in_namespace("true").splitlines()
    assert 'expected to reach 127.0.0.1, found "Network is unreachable"' in line
    assert "ip link set lo up" in line


def test_few_ports_are_counted() -> None:
    (line,) = in_namespace(UP, FEW_PORTS).splitlines()
    assert "free ones on 127.0.0.1, found 4" in line
    assert "net.ipv4.ip_local_port_range is 60000 to 60003" in line


def test_small_shared_memory_is_told_with_both_sizes() -> None:
    (line,) = in_namespace(UP, "mount -t tmpfs -o size=64k none /dev/shm").splitlines()
    assert f"{SHARED_MEMORY}: expected " in line
    assert "free, found 64 KiB" in line
    assert "--shm-size=" in line


def test_full_shared_memory_is_told() -> None:
    fill = "head -c 32M /dev/zero > /dev/shm/filler || true"
    said = in_namespace(UP, "mount -t tmpfs -o size=32m none /dev/shm", fill)
    assert f"{SHARED_MEMORY}: expected " in said
    assert "found 0 KiB" in said


def test_full_temporary_folder_is_told(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=1m none {tmp_path}"
    (line,) = in_namespace(UP, mount, TMPDIR=str(tmp_path)).splitlines()
    assert f"temporary folder {tmp_path}: expected " in line
    assert "TMPDIR" in line


def test_everything_that_is_missing_is_told_at_once() -> None:
    said = in_namespace("mount -t tmpfs -o size=64k none /dev/shm")
    told = [line.split(": ")[1] for line in said.splitlines()]
    assert told == ["loopback interface", str(SHARED_MEMORY)]


def test_memory_that_is_missing_is_told_with_both_sizes() -> None:
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
        needs("curated/nixl-disagg", 1),
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
