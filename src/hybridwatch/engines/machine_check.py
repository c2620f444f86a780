"""Whether this machine can hold an engine at all: checked before one is started.

An engine that lacks one of these says so minutes later, in words of torch or asyncio, or never.
Each check takes milliseconds and says in one line what was expected, what was found, what helps.
"""

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import BuildSpec
from hybridwatch.engines.free_memory import free_memory
from hybridwatch.engines.launch import HOST
from hybridwatch.errors import MachineError
from hybridwatch.scenarios.scenario import Scenario

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


@dataclass(frozen=True, slots=True)
class Needs:
    """What the engines of a session need of the machine at the same time.

    Attributes:
        ports: TCP ports of the loopback interface.
        memory: Bytes of memory.
        shared: Bytes in ``/dev/shm``.
        temporary: Bytes in the folder for temporary files.
    """

    ports: int
    memory: int
    shared: int
    temporary: int = _TEMPORARY_BYTES

    @classmethod
    def of(cls, scenario: Scenario, builds: Sequence[BuildSpec]) -> "Needs":
        """Add up what the scenario's engine needs on each of the builds, and its timed load."""
        engine = scenario.engine
        each = 2 if engine.disaggregated else engine.data_parallel_size
        count = each * len(builds)
        caches = sum(int(build.env.get(CACHE_VARIABLE) or 0) for build in builds) * each
        return cls(
            ports=_PORTS * count + scenario.workload.generation.max_concurrency,
            memory=caches * _GIB + _PROCESS_BYTES * count,
            shared=_SHARED_BYTES * count,
        )


def require_machine(needs: Needs) -> None:
    """Refuse to start engines that cannot come up.

    Raises:
        MachineError: Something is missing; a line each.
    """
    looks: tuple[Callable[[Needs], Iterator[str]], ...] = (
        _loopback,
        _memory,
        _shared_memory,
        _temporary_folder,
    )
    lacks = [line for look in looks for line in look(needs)]
    if lacks:
        raise MachineError(
            "\n".join(f"no engine can run on this machine: {line}" for line in lacks)
        )


def _loopback(needs: Needs) -> Iterator[str]:
    """A connection to ourselves, then as many ports as are needed at once."""
    try:
        _connect()
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


def _connect() -> None:
    with socket.socket() as listener, socket.socket() as caller:
        listener.bind((HOST, 0))
        listener.listen()
        caller.settimeout(_CONNECT_S)
        caller.connect(listener.getsockname())


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
