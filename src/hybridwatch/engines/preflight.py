"""Checks before a start, each in a moment, what an engine says minutes later or never."""

import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from hybridwatch.engines import pip
from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.launch import HOST
from hybridwatch.errors import BuildError, GpuError, MachineError
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system import nvidia
from hybridwatch.system.python_command import python_command, run_captured

_ROOT: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_FILES: Final = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Version of control groups to the files of the limit and of the use, and to what of the use the
kernel gives back when it is needed."""
_GIB: Final = 1024**3
_MIB: Final = 1024**2
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - looked at, never written to
CACHE_VARIABLE: Final = "VLLM_CPU_KVCACHE_SPACE"
"""What a CPU engine sets aside for its caches, GiB; it refuses to start where that is not free."""
_PROCESS_BYTES: Final = 1 * _GIB
"""An engine of an embedded model took 0.65 GiB, a load client not quite half of that."""
_SHARED_BYTES: Final = 1 * _MIB
"""An engine took one page, for a semaphore; without that page it ends at its start."""
_PORTS: Final = 64
"""Of an engine, the client and us: fifteen listened, and 37 connections were open or closing."""
_TEMPORARY_BYTES: Final = 64 * _MIB
_CONNECT_S: Final = 2.0
OLDEST_DRIVER: Final[Mapping[int, str]] = {12: "525", 13: "580"}
"""Major version of CUDA to the oldest branch of drivers that runs all its minor versions (NVIDIA,
CUDA Compatibility, "Minor Version Compatibility")."""
_SHOWN: Final = 5
"""Versions that a message lists where another one is missing: the newest."""
_TOOLKIT = re.compile(r"^cuda-toolkit==(\d+)\.(\d+)", re.MULTILINE)
_NO_WHEEL = re.compile(r"satisfies the requirement (\S+)(?:.*?\(from versions: (.*?)\))?")


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """The tightest bound."""

    bytes: int
    where: str


def free_memory(own: Path = _OWN, root: Path = _ROOT) -> FreeMemory:
    """Find the bound that a new process meets first, of its groups' parents and the mount, too."""
    bounds = [FreeMemory(psutil.virtual_memory().available, "of the machine")]
    for version, folder in _folders(own, root):
        limit, used, given_back = _FILES[version]
        try:
            most = (folder / limit).read_text(encoding="ascii").strip()
            if most != "max":
                now = int((folder / used).read_text(encoding="ascii"))
                free = max(0, int(most) - now + _of_statistics(folder, given_back))
                bounds.append(FreeMemory(free, f"within the limit {folder / limit}"))
        except (OSError, ValueError):
            continue  # no such group, or one that bounds no memory
    return min(bounds, key=lambda bound: bound.bytes)


def _folders(own: Path, root: Path) -> Iterator[tuple[int, Path]]:
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / "memory" if kinds else root
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            yield (1 if kinds else 2), folder
            if folder == top:
                break


def _of_statistics(folder: Path, name: str) -> int:
    lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(" ", 1) for line in lines).get(name, 0))


@dataclass(frozen=True, slots=True)
class Needs:
    """What the engines of a session need at the same time: ports, and bytes of each place."""

    ports: int
    memory: int
    shared: int
    temporary: int = _TEMPORARY_BYTES

    @classmethod
    def of(cls, scenario: Scenario, builds: Sequence[BuildSpec]) -> "Needs":
        """Add up what the scenario's engine needs on each of the builds, and its timed load."""
        engine = scenario.engine
        each = 2 if engine.disaggregated else engine.data_parallel_size * engine.workers
        count = each * len(builds)
        caches = sum(int(build.env.get(CACHE_VARIABLE) or 0) for build in builds) * each
        return cls(
            ports=_PORTS * count + scenario.workload.generation.max_concurrency,
            memory=caches * _GIB + _PROCESS_BYTES * count,
            shared=_SHARED_BYTES * count,
        )


def require_machine(needs: Needs) -> None:
    """Refuse to start engines that cannot come up, with a line for each thing that is missing."""
    looks = (_loopback, _memory, _shared_memory, _temporary_folder)
    lacks = [line for look in looks for line in look(needs)]
    if lacks:
        raise MachineError(
            "\n".join(f"no engine can run on this machine: {line}" for line in lacks)
        )


def _loopback(needs: Needs) -> Iterator[str]:
    """A connection to ourselves, then as many ports as are needed at once."""
    try:
        with socket.socket() as listener, socket.socket() as caller:
            listener.bind((HOST, 0))
            listener.listen()
            caller.settimeout(_CONNECT_S)
            caller.connect(listener.getsockname())
    except OSError as error:
        yield (
            f"loopback interface: expected to reach {HOST}, found {_reason(error)}; "
            "bring it up: ip link set lo up"
        )
        return
    with ExitStack() as sockets:
        for found in range(needs.ports):
            try:
                sockets.enter_context(socket.socket()).bind((HOST, 0))
            except OSError as error:
                yield (
                    f"ports: expected {needs.ports} free ones on {HOST}, found {found} "
                    f"({_reason(error)}); {_more_ports()}"
                )
                return


def _more_ports() -> str:
    name = "net.ipv4.ip_local_port_range"
    try:
        range_ = " to ".join(Path("/proc/sys", *name.split(".", 2)).read_text().split())
    except OSError:
        return f"widen {name} or end what holds them"
    return f"{name} is {range_}: widen it or end what holds them"


def _memory(needs: Needs) -> Iterator[str]:
    free = free_memory()
    if free.bytes < needs.memory:
        yield (
            f"memory: expected {_size(needs.memory)} free ({CACHE_VARIABLE} of the build and the "
            f"processes), found {_size(free.bytes)} ({free.where}); end what holds it, raise the "
            "limit, or lower the build's env in engine/builds.toml"
        )


def _shared_memory(needs: Needs) -> Iterator[str]:
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError as error:
        yield (
            f"{SHARED_MEMORY}: expected a folder with {_size(needs.shared)} free, found "
            f"{_reason(error)}; mount a tmpfs there"
        )
        return
    if free < needs.shared:
        yield (
            f"{SHARED_MEMORY}: expected {_size(needs.shared)} free, found {_size(free)}; remove "
            "what lies there, or give a container more: --shm-size=64m"
        )


def _temporary_folder(needs: Needs) -> Iterator[str]:
    try:
        folder = Path(tempfile.gettempdir())
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"hybridwatch")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield (
            f"temporary folder: expected one that can be written, found {_reason(error)}; "
            "name one in TMPDIR"
        )
        return
    if free < needs.temporary:
        yield (
            f"temporary folder {folder}: expected {_size(needs.temporary)} free, found "
            f"{_size(free)}; make room there or name another one in TMPDIR"
        )


def _reason(error: OSError) -> str:
    return f'"{error.strerror or error}"'


def _size(count: int) -> str:
    if count >= _GIB:
        return f"{count / _GIB:.1f} GiB"
    return f"{count / _MIB:.1f} MiB" if count >= _MIB else f"{count // 1024} KiB"


def cuda_version(build: BuildSpec) -> tuple[int, int] | None:
    """The CUDA version of the build's torch by its lock; ``None`` of a build for CPUs."""
    found = _TOOLKIT.search(build.lock_file.read_text(encoding="utf-8"))
    return (int(found[1]), int(found[2])) if found else None


def require_python(build: BuildSpec) -> None:
    """Refuse a build whose environment this Python cannot make."""
    newest = build.newest_python
    if _version(build.python) <= sys.version_info[:2] <= _version(newest or "3.99"):
        return
    expected = f"{build.python} to {newest}" if newest else f"{build.python} or newer"
    raise BuildError(f"{build.name} needs Python {expected}; this is {sys.version.split()[0]}")


def require_gpu(build: BuildSpec) -> None:
    """Refuse a build for CUDA on a machine that cannot run it; others need no GPU."""
    if build.accelerator != "cuda":
        return
    version = cuda_version(build)
    needed = f"an NVIDIA driver{_for_cuda(version)}"
    try:
        driver, devices = nvidia.driver(), nvidia.devices()
    except GpuError as error:
        raise BuildError(f"{build.name} needs {needed}; {error}") from None
    # A driver of the same major version runs every minor one.
    if version is not None and int(driver.cuda.split(".")[0]) < version[0]:
        raise BuildError(
            f"{build.name} needs {needed}; this is driver {driver.version}, "
            f"which goes up to CUDA {driver.cuda}"
        )
    if not devices:
        raise BuildError(
            f"{build.name} needs an NVIDIA GPU; driver {driver.version} shows none to this process"
        )


def _for_cuda(version: tuple[int, int] | None) -> str:
    if version is None:
        return ""
    branch = OLDEST_DRIVER.get(version[0])
    return f" for CUDA {version[0]}.{version[1]}" + (f" ({branch} or newer)" if branch else "")


def require_wheels(build: BuildSpec, arguments: Sequence[str], wheels: Sequence[Path] = ()) -> None:
    """Refuse a build without all its wheels in the folders, or an index; installs nothing."""
    options = ("--dry-run", "--ignore-installed", "--quiet", *pip.OPTIONS, *pip.source(wheels))
    command = python_command("-m", "pip", "install", *options, *arguments)
    done = run_captured(command, env=pip.environment(wheels), check=False)
    if done.returncode == 0:
        return
    missing = _NO_WHEEL.search(done.stderr)
    if missing is None:
        tail = "\n".join(done.stderr.splitlines()[-10:])
        raise BuildError(f"{build.name}: pip ended with status {done.returncode}:\n{tail}")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    where = ", ".join(map(str, wheels)) or "the index"
    there = ", ".join((missing[2] or "none").split(", ")[-_SHOWN:])
    raise BuildError(
        f"{build.name} needs a wheel of {missing[1]} for Python {python}; "
        f"in {where} there is {there}"
    )


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
