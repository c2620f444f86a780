"""A vLLM engine, or two that share the work of each request: start it, check its health, stop it.

Of a pair one computes prompts, the other answers. vLLM's NIXL connector moves the attention cache
and the Mamba state between them; ``pair_proxy`` sends each request through both.
"""

import json
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Final, Self

import httpx

from hybridwatch.engines.launch import HOST, Launch
from hybridwatch.engines.pair_proxy import DECODE, PREFILL
from hybridwatch.errors import EngineError, LateEngineError
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.python_command import python_command

_POLL_S: Final = 0.2
_HEALTH_S: Final = 5.0
_PORTS: Final = range(16_384, 32_768)
"""Below what Linux gives by itself (``ip_local_port_range``)."""
_TRIES: Final = 100
"""Of these; then any port will do."""
_SIGNALLED: Final = 192
"""From here on a status of the guard is that of a command which a signal has ended."""

_NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Engines use plain HTTP on loopback; without this a client reads every certificate of the
machine, which takes longer than most requests."""


def free_port() -> int:
    """A port no process listens on; none that the system gives to others until the engine is up."""
    with socket.socket() as probe:
        for port in SystemRandom().sample(_PORTS, _TRIES):
            with suppress(OSError):
                probe.bind((HOST, port))
                return port
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def open_http(url: str, timeout_s: float) -> httpx.Client:
    """Open a client for what listens on loopback, past any proxy of the environment."""
    # A connection for each request in flight: one without would never reach a held engine.
    limits = httpx.Limits(max_connections=None)
    return httpx.Client(
        base_url=url, timeout=timeout_s, limits=limits, trust_env=False, verify=_NO_CERTIFICATES
    )


def is_healthy(url: str) -> bool:
    """Whether what listens at an address, an engine or a proxy, says that all is well."""
    try:
        with open_http(url, _HEALTH_S) as http:
            return http.get("/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


class Stopped:
    """A context manager for whatever has ``stop``."""

    def stop(self) -> None:
        """End it and all its processes."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Listening(Stopped):
    """What listens on a port of this machine."""

    _port: int

    @property
    def url(self) -> str:
        """Base address, without a path."""
        return f"http://{HOST}:{self._port}"

    def is_well(self) -> bool:
        """Whether it answers its health check; a proxy's says that both of its engines do."""
        return is_healthy(self.url)


class EngineServer(_Listening):
    """One engine on a free port; a context manager. Without ``wait`` it is made before it is up."""

    def __init__(self, launch: Launch, log: Path, *, wait: bool = True) -> None:
        self.launch = launch
        self._port = free_port()
        self._process = GuardedProcess(launch.command(self._port), log, launch.variables())
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            if wait:
                wait_until_up(self.servers)
            on_error.pop_all()

    @property
    def servers(self) -> tuple["EngineServer", ...]:
        """The engines behind the address: this one."""
        return (self,)

    @property
    def pid(self) -> int:
        """A process from which all of the engine's descend, its front end included."""
        return self._process.pid

    def require_running(self) -> None:
        """Nothing while the process lives, whether it answers already or not."""
        status = self._process.exit_status
        if status is not None:
            ended = f"status {status}" if status < _SIGNALLED else f"signal {256 - status}"
            raise self.error(f"the engine ended while starting ({ended}){self._why()}")

    def require_no_error(self) -> None:
        """Nothing while no process of the engine has reported an error that ends it."""
        if why := self._why():
            raise self.error(f"the engine does not come up{why}")

    def _why(self) -> str:
        first = self._process.first_error()
        return f": {first}" if first else ""

    def error(self, message: str) -> EngineError:
        """An error about this engine, with the tail of its log."""
        return EngineError(message, self.log_tail())

    def log_tail(self) -> str:
        """The last lines of its log, behind the first exception where that is further up."""
        return self._process.log_excerpt()

    def stop(self) -> None:
        """End it and all its processes."""
        self._process.stop()


def wait_until_up(servers: Sequence[EngineServer]) -> None:
    """Wait for engines that were started together; the first that dies ends the wait."""
    timeout_s = servers[0].launch.start_timeout_s
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
        time.sleep(_POLL_S)


_PROXY_POLL_S: Final = 0.1
_PROXY_START_S: Final = 30.0

_PAIR_ENVIRONMENT: Final = {
    # Left alone, UCX listens on every network interface. Shared memory would be left behind by a
    # killed engine, and NIXL cannot use it: it has no way to notice that a peer died.
    "UCX_NET_DEVICES": "lo",
    # The layout in which the connector can find the parts of a convolution state.
    "VLLM_SSM_CONV_STATE_LAYOUT": "DS",
    "VLLM_NIXL_SIDE_CHANNEL_HOST": HOST,
}

_OF_ACCELERATOR: Final = {
    "cpu": {
        "UCX_TLS": "tcp",
        # Else both engines would take the first core of the machine.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    },
    # From one GPU's memory to another's, or within one's; by the host where there is no other way.
    "cuda": {"UCX_TLS": "tcp,cuda_copy,cuda_ipc"},
}


def pair_launch(launch: Launch, role: str) -> Launch:
    """The same engine as one of a pair: ``prefill`` gets the first GPU, ``decode`` the last."""
    transfer = {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_both",
        "kv_buffer_device": launch.accelerator,
        # A state that did not arrive is an error; "recompute" would hide it from a measurement.
        "kv_load_failure_policy": "fail",
    }
    flags = {
        "kv-transfer-config": json.dumps(transfer),
        # Attention cache and Mamba state are handed over as two kinds of cache or not at all.
        "no-disable-hybrid-kv-cache-manager": "",
    }
    port = {"VLLM_NIXL_SIDE_CHANNEL_PORT": str(free_port())}
    ours = {**_PAIR_ENVIRONMENT, **_OF_ACCELERATOR[launch.accelerator], **port}
    return replace(
        launch,
        environment={**launch.environment, **ours},
        flags={**launch.flags, **flags},
        gpus=launch.gpus[:1] if role == PREFILL else launch.gpus[-1:],
    )


class DisaggregatedServer(_Listening):
    """A prefill and a decode engine behind one address; a context manager.

    ``log`` is the proxy's; next to ``x.log`` are the engines' ``x.prefill.log`` and
    ``x.decode.log``.
    """

    def __init__(self, launch: Launch, log: Path) -> None:
        self.launch = launch
        self._port = free_port()
        self._running = ExitStack()
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            self._prefill = self._start_engine(PREFILL, log)
            if len(launch.gpus) == 1:
                # An engine that sees memory come and go while it measures its own gives up.
                wait_until_up((self._prefill,))
            self._decode = self._start_engine(DECODE, log)
            self._proxy = self._start_proxy(log)
            wait_until_up(self.servers)
            self._wait_for_proxy()
            on_error.pop_all()

    def _start_engine(self, role: str, log: Path) -> EngineServer:
        own_log = log.with_name(f"{log.stem}.{role}{log.suffix}")
        engine = EngineServer(pair_launch(self.launch, role), own_log, wait=False)
        self._running.callback(engine.stop)
        return engine

    def _start_proxy(self, log: Path) -> GuardedProcess:
        options = {"port": str(self._port), PREFILL: self._prefill.url, DECODE: self._decode.url}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        command = python_command("-m", "hybridwatch.engines.pair_proxy", *words)
        proxy = GuardedProcess(command, log, {})
        self._running.callback(proxy.stop)
        return proxy

    def _wait_for_proxy(self) -> None:
        deadline = time.monotonic() + _PROXY_START_S
        while not self.is_well():
            if self._proxy.exit_status is not None:
                raise self.error(f"the proxy ended (status {self._proxy.exit_status})")
            if time.monotonic() > deadline:
                raise self.error(f"the proxy was not up after {_PROXY_START_S:.0f} s")
            time.sleep(_PROXY_POLL_S)

    @property
    def servers(self) -> tuple[EngineServer, EngineServer]:
        """The engines behind the address: prefill, decode."""
        return self._prefill, self._decode

    def error(self, message: str) -> EngineError:
        """An error about the pair, with the tails of all three logs."""
        tails = {
            PREFILL: self._prefill.log_tail(),
            DECODE: self._decode.log_tail(),
            "proxy": self._proxy.log_tail(),
        }
        log_tails = "\n".join(f"--- {name}\n{tail}" for name, tail in tails.items() if tail)
        return EngineError(message, log_tails)

    def stop(self) -> None:
        """End proxy and engines and all their processes; may be called again."""
        self._running.close()


Server = EngineServer | DisaggregatedServer
"""Whatever answers requests at one address; the engines behind it are its ``servers``."""


def start_server(launch: Launch, log: Path) -> Server:
    """Start what the scenario's engine arguments ask for, and wait until it is up."""
    if launch.engine.disaggregated:
        return DisaggregatedServer(launch, log)
    return EngineServer(launch, log)
