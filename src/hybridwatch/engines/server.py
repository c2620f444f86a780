"""A vLLM engine: start it, check its health, stop it."""

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, Self

import httpx

from hybridwatch.engines.launch import HOST, Launch
from hybridwatch.errors import EngineError, LateEngineError
from hybridwatch.system.guarded import GuardedProcess

_POLL_S: Final = 0.2
_PORTS: Final = range(16_384, 32_768)
"""Below what Linux gives by itself (``ip_local_port_range``)."""
_TRIES: Final = 100
"""Of these; then any port will do."""
_SIGNALLED: Final = 192
"""From here on a status of the guard is that of a command which a signal has ended."""

NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Engines use plain HTTP on loopback; without this a client reads every certificate of the
machine, which takes longer than most requests."""


def free_port() -> int:
    """A TCP port that no process listens on at the moment.

    An engine takes half a minute until it listens. So the port is not one of those that the system
    gives to any process that asks: another could have it by then.

    Raises:
        OSError: Nothing can listen on loopback.
    """
    with socket.socket() as probe:
        for port in SystemRandom().sample(_PORTS, _TRIES):
            with suppress(OSError):
                probe.bind((HOST, port))
                return port
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_healthy(url: str, timeout_s: float) -> bool:
    """Whether what listens at an address, an engine or a proxy, says that all is well."""
    try:
        answer = httpx.get(
            f"{url}/health", timeout=timeout_s, trust_env=False, verify=NO_CERTIFICATES
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK


class Stopped:
    """A context manager for whatever has ``stop``."""

    def stop(self) -> None:
        """End it and all its processes."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class EngineServer(Stopped):
    """One running engine on a free loopback port; a context manager.

    Args:
        start_timeout_s: Limit for coming up; None for what its accelerator needs.
        wait: Whether to return only when it is up; else ``wait_until_up`` is the caller's to call.

    Raises:
        EngineError: It died or did not come up in time; carries the tail of its log.
    """

    def __init__(
        self,
        launch: Launch,
        log: Path,
        *,
        start_timeout_s: float | None = None,
        waiting: Callable[[], None] = lambda: None,
        wait: bool = True,
    ) -> None:
        self.launch = launch
        self._port = free_port()
        self._process = GuardedProcess(launch.command(self._port), log, launch.variables())
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            if wait:
                wait_until_up(self.servers, start_timeout_s or launch.start_timeout_s, waiting)
            on_error.pop_all()

    @property
    def url(self) -> str:
        """Base address, without a path."""
        return f"http://{HOST}:{self._port}"

    @property
    def servers(self) -> tuple["EngineServer", ...]:
        """The engines behind the address: this one."""
        return (self,)

    def require_running(self) -> None:
        """Nothing while the process lives, whether it answers already or not.

        Raises:
            EngineError: It has ended; carries the tail of its log.
        """
        status = self._process.exit_status
        if status is not None:
            ended = f"status {status}" if status < _SIGNALLED else f"signal {256 - status}"
            raise self.error(f"the engine ended while starting ({ended}){self._why()}")

    def require_no_error(self) -> None:
        """Nothing while no process of the engine has reported an error that ends it.

        Raises:
            EngineError: One has, though the serving process still waits for it.
        """
        if why := self._why():
            raise self.error(f"the engine does not come up{why}")

    def _why(self) -> str:
        first = self._process.first_error()
        return f": {first}" if first else ""

    def processor_seconds(self) -> float:
        """Processor time of the engine, front end included, since it began."""
        return self._process.processor_seconds()

    def is_well(self, timeout_s: float = 5.0) -> bool:
        """Whether it answers its health check."""
        return is_healthy(self.url, timeout_s)

    def error(self, message: str) -> EngineError:
        """An error about this engine, with the tail of its log."""
        return EngineError(message, self.log_tail())

    def log_tail(self) -> str:
        """The last lines of its log, behind the first exception where that is further up."""
        return self._process.log_excerpt()

    def stop(self) -> None:
        """End it and all its processes."""
        self._process.stop()


def wait_until_up(
    servers: Sequence[EngineServer], timeout_s: float, waiting: Callable[[], None]
) -> None:
    """Wait for engines that were started together; the first that dies ends the wait.

    Raises:
        EngineError: One died or did not come up in time; carries the tail of its log.
    """
    deadline = time.monotonic() + timeout_s
    late = list(servers)
    while late := [server for server in late if not server.is_well()]:
        for server in servers:
            server.require_running()
        if time.monotonic() > deadline:
            for server in late:
                server.require_no_error()
            message = f"the engine was not up after {timeout_s:.0f} s"
            raise LateEngineError(message, late[0].log_tail())
        waiting()
        time.sleep(_POLL_S)
