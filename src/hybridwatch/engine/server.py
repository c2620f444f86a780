"""A vLLM engine: started, asked whether it is well, stopped."""

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import httpx

from hybridwatch.errors import EngineError
from hybridwatch.process import GuardedProcess
from hybridwatch.scenario.scenario import EngineArgs

START_TIMEOUT_S: Final = 180.0
"""An engine start took 16 to 27 s on two cores, thrice that on a busy machine."""

_POLL_S: Final = 0.2
HOST: Final = "127.0.0.1"
"""Everything of ours listens here and nowhere else."""

_NO_CACHING: Final = "no-enable-prefix-caching"

_ENVIRONMENT: Final = {
    # The control channel; only safe because the engine listens on loopback alone.
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_HOST_IP": HOST,
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that decides how an engine comes up.

    Attributes:
        python: Interpreter of the build's environment.
        model: Folder of the checkpoint.
        served_name: Name under which requests ask for it.
        engine: The scenario's engine arguments.
        graph_replay: Replay FULL graphs on the CPU.
        fixes: Fixes to switch before the engine starts.
        environment: Further variables, from the build.
        flags: Further arguments of the server, from the build; an empty value is a switch that
            takes none.
    """

    python: Path
    model: Path
    served_name: str
    engine: EngineArgs
    graph_replay: bool
    fixes: Mapping[str, bool]
    environment: Mapping[str, str]
    flags: Mapping[str, str]

    def with_engine(self, engine: EngineArgs, *, graph_replay: bool) -> "Launch":
        """The same with other engine arguments."""
        return replace(self, engine=engine, graph_replay=graph_replay)

    def command(self, port: int) -> list[str]:
        """The command line of the engine."""
        compilation = {
            "mode": 0,
            "cudagraph_mode": self.engine.cudagraph_mode,
            "cudagraph_capture_sizes": list(self.engine.cudagraph_capture_sizes),
        }
        options = {
            "model": str(self.model),
            "served-model-name": self.served_name,
            "host": HOST,
            "port": str(port),
            "dtype": self.engine.dtype,
            "max-model-len": str(self.engine.max_model_len),
            "max-num-seqs": str(self.engine.max_num_seqs),
            "compilation-config": json.dumps(compilation),
            "worker-extension-cls": "hybridwatch_engine.control.WorkerControl",
            # Counts requests from their arrival on, also while the scheduler is held.
            "enable-server-load-tracking": "",
            **_flags_asked_for(self.engine),
            **_speculation(self.engine, self.model.parent),
            **self.flags,
        }
        arguments = [
            word for name, value in options.items() for word in (f"--{name}", value) if word
        ]
        server = [str(self.python), "-m", "hybridwatch_engine.serve"]
        return [*server, *arguments, "--disable-uvicorn-access-log"]

    def variables(self) -> dict[str, str]:
        """The environment of the engine, on top of ours."""
        ranks = self.engine.data_parallel_size
        wishes: dict[str, object] = {"graph_replay": self.graph_replay, "fixes": dict(self.fixes)}
        if self.engine.model_runner is not None:
            wishes["model_runner"] = self.engine.model_runner
        # Ranks that each take the first core of the machine would share it.
        cores = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if ranks > 1 else {}
        told = {"HYBRIDWATCH_ENGINE": json.dumps(wishes)}
        return {**_ENVIRONMENT, **cores, **self.environment, **told}


def _flags_asked_for(engine: EngineArgs) -> dict[str, str]:
    """Arguments that a scenario may leave to the engine; a switch has an empty value."""
    valued = {
        "max-num-batched-tokens": engine.max_num_batched_tokens,
        "mamba-cache-mode": engine.mamba_cache_mode,
        "num-gpu-blocks-override": engine.num_gpu_blocks_override,
        "block-size": engine.block_size,
        "data-parallel-size": engine.data_parallel_size if engine.data_parallel_size > 1 else None,
    }
    flags = {name: str(value) for name, value in valued.items() if value is not None}
    if engine.data_parallel_size > 1:
        # Each rank's worker in its core: on few cores more processes wait for each other.
        flags["distributed-executor-backend"] = "uni"
    if engine.enable_prefix_caching is not None:
        flags["enable-prefix-caching" if engine.enable_prefix_caching else _NO_CACHING] = ""
    return flags


def _speculation(engine: EngineArgs, models: Path) -> dict[str, str]:
    """The argument that makes the engine speculate; drafts lie beside the target's model."""
    asked = engine.speculation
    if asked is None:
        return {}
    config = {
        "method": asked.method,
        "num_speculative_tokens": asked.drafts,
        "model": None if asked.model is None else str(models / asked.model),
        "prompt_lookup_min": asked.lookup_min,
        "prompt_lookup_max": asked.lookup_max,
    }
    said = {key: value for key, value in config.items() if value is not None}
    return {"speculative-config": json.dumps(said)}


def free_port() -> int:
    """A TCP port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_healthy(url: str, timeout_s: float) -> bool:
    """Whether what listens at an address, an engine or a proxy, says that all is well."""
    try:
        answer = httpx.get(f"{url}/health", timeout=timeout_s, trust_env=False)
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
        launch: How to start it.
        log: File for its log.
        start_timeout_s: Limit for coming up.
        waiting: Called now and then while it comes up, for progress.
        wait: Whether to return only when it is up; else ``wait_until_up`` is the caller's to call.

    Raises:
        EngineError: It died or did not come up in time; carries the tail of its log.
    """

    def __init__(
        self,
        launch: Launch,
        log: Path,
        *,
        start_timeout_s: float = START_TIMEOUT_S,
        waiting: Callable[[], None] = lambda: None,
        wait: bool = True,
    ) -> None:
        self.launch = launch
        self._port = free_port()
        self._process = GuardedProcess(launch.command(self._port), log, launch.variables())
        with ExitStack() as on_error:
            on_error.callback(self.stop)
            if wait:
                wait_until_up(self.servers, start_timeout_s, waiting)
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
            first = self._process.first_error()
            why = f": {first}" if first else ""
            raise self.error(f"the engine ended while starting (status {status}){why}")

    def is_well(self, timeout_s: float = 5.0) -> bool:
        """Whether it answers its health check."""
        return is_healthy(self.url, timeout_s)

    def error(self, message: str) -> EngineError:
        """An error about this engine, with the tail of its log."""
        return EngineError(message, self.log_tail())

    def log_tail(self) -> str:
        """The last lines of its log."""
        return self._process.log_tail()

    def stop(self) -> None:
        """End it and all its processes."""
        self._process.stop()


def wait_until_up(
    servers: Sequence[EngineServer], timeout_s: float, waiting: Callable[[], None]
) -> None:
    """Wait for engines that were started together; the first that dies ends the wait.

    Args:
        servers: The engines.
        timeout_s: Limit for all of them.
        waiting: Called now and then, for progress.

    Raises:
        EngineError: One died or did not come up in time; carries the tail of its log.
    """
    deadline = time.monotonic() + timeout_s
    late = list(servers)
    while late := [server for server in late if not server.is_well()]:
        for server in servers:
            server.require_running()
        if time.monotonic() > deadline:
            raise late[0].error(f"the engine was not up after {timeout_s:.0f} s")
        waiting()
        time.sleep(_POLL_S)
