"""The command line and the environment with which an engine is started."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hybridwatch.scenarios.engine import EngineArgs
from hybridwatch.scenarios.fixes import own_folders
from hybridwatch.system.python_command import python_command

SETTINGS: Final = "HYBRIDWATCH_ENGINE"
"""The variable of an engine's environment that has the plugin's settings, as JSON."""


def own_settings() -> dict[str, list[str]]:
    """Give the plugin's settings that name folders, those without any left out."""
    named = {"own_fixes": own_folders("fixes"), "own_mutants": own_folders("mutants")}
    return {key: list(map(str, folders)) for key, folders in named.items() if folders}


def own_variables() -> dict[str, str]:
    """Give what a process needs in its environment to know the folders, and nothing else."""
    settings = own_settings()
    return {SETTINGS: json.dumps(settings)} if settings else {}


START_TIMEOUT_S: Final = 600.0
"""As vLLM's own ``VLLM_ENGINE_READY_TIMEOUT_S``. A start takes 16 to 27 s on two cores; on a cold
disk, next to other work, it took over 180. An engine that dies is not waited for.
"""

CUDA_START_TIMEOUT_S: Final = 1200.0
"""A GPU's engine reads tens of gigabytes, compiles a model and captures graphs before it is up."""

HOST: Final = "127.0.0.1"
"""Everything of ours listens here and nowhere else."""

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
        graph_replay: Replay FULL graphs on the CPU.
        flags: Further arguments of the server; an empty value is a switch that takes none.
        tokenizer: Its folder; None for the model's own.
        own: Folders of the user's own fixes and faults, by the setting that names them.
        draft: Folder of the model that drafts; None where it is in the target's folder.
        adapters: Folders of ``engine.lora_modules``.
        gpus: What its processes may use, as CUDA numbers them along the PCI bus.
        memory_share: Share of a GPU's memory that it may take; None for its own default.
        hash_seed: What Python's hashes are drawn from; None for another draw at each start.
        planted: Faults that act while it starts.
    """

    python: Path
    model: Path
    served_name: str
    engine: EngineArgs
    graph_replay: bool
    fixes: Mapping[str, bool]
    environment: Mapping[str, str]
    flags: Mapping[str, str]
    accelerator: str = "cpu"
    tokenizer: Path | None = None
    draft: Path | None = None
    adapters: tuple[Path, ...] = ()
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    memory_share: float | None = None
    hash_seed: int | None = None
    planted: Sequence[str] = ()

    @property
    def start_timeout_s(self) -> float:
        """How long it may take to come up."""
        return CUDA_START_TIMEOUT_S if self.accelerator == "cuda" else START_TIMEOUT_S

    @property
    def can_set_graphs_aside(self) -> bool:
        """Whether the live engine can do without FULL graphs: on a CPU ours, on a GPU vLLM's."""
        if self.accelerator == "cpu":
            return self.graph_replay
        return "FULL" in self.engine.cudagraph_mode

    @property
    def can_withhold_drafts(self) -> bool:
        """Whether the live engine can do without drafts, on which an async GPU scheduler counts."""
        ahead = self.accelerator != "cpu" and self.engine.async_scheduling is not False
        return self.engine.speculation is not None and not ahead

    def command(self, port: int) -> list[str]:
        """The command line of the engine."""
        compilation = {
            "mode": self.engine.compilation_mode or 0,
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
            **_own_flags(self.engine),
            **_speculation(self.engine, self.draft, self.model.parent),
            **_connector(self.engine),
            **self._layout(),
            **self.flags,
        }
        arguments = [
            word for name, value in options.items() for word in (f"--{name}", value) if word
        ]
        if self.adapters:
            named = (f"{folder.name}={folder}" for folder in self.adapters)
            arguments += ["--enable-lora", "--lora-modules", *named]
        server = python_command("-m", "hybridwatch_engine.serve", python=self.python)
        return [*server, *arguments, "--disable-uvicorn-access-log"]

    def _layout(self) -> dict[str, str]:
        flags = {}
        if self.tokenizer is not None:
            flags["tokenizer"] = str(self.tokenizer)
        if self.memory_share is not None:
            flags["gpu-memory-utilization"] = f"{self.memory_share:g}"
        if self.engine.data_parallel_size > 1 and self.accelerator == "cpu":
            # Each rank's worker in its core: on few cores more processes wait for each other.
            flags["distributed-executor-backend"] = "uni"
        return flags

    def variables(self) -> dict[str, str]:
        """The environment of the engine, on top of ours."""
        wishes: dict[str, object] = {"graph_replay": self.graph_replay, "fixes": dict(self.fixes)}
        if self.engine.model_runner is not None:
            wishes["model_runner"] = self.engine.model_runner
        if self.planted:
            wishes["planted"] = list(self.planted)
        for_plugin = {SETTINGS: json.dumps({**wishes, **self.own})}
        drawn = {} if self.hash_seed is None else {"PYTHONHASHSEED": str(self.hash_seed)}
        return {
            **_ENVIRONMENT,
            **drawn,
            **self._devices(),
            **_own_variables(self.engine),
            **self.environment,
            **for_plugin,
        }

    def _devices(self) -> dict[str, str]:
        if self.gpus:
            return {
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                "CUDA_VISIBLE_DEVICES": ",".join(self.gpus),
                # FlashInfer compiles it on the spot, with a CUDA toolkit that need not be there
                # (vllm#49497). Every request here is greedy and needs no sampler.
                "VLLM_USE_FLASHINFER_SAMPLER": "0",
            }
        # Ranks that each take the first core of the machine would share it.
        ranks = self.engine.data_parallel_size * self.engine.workers
        shared = self.accelerator == "cpu" and ranks > 1
        return {"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if shared else {}


_VALUED: Final = (
    *("load_format", "max_num_batched_tokens", "scheduling_policy", "mamba_cache_mode"),
    *("mamba_cache_dtype", "kv_cache_dtype", "mamba_ssm_cache_dtype", "mamba_block_size"),
    *("prefix_match_unit", "replayssm_buffer_len", "max_loras", "max_lora_rank"),
    *("num_gpu_blocks_override", "block_size"),
)
"""Fields of ``EngineArgs`` that the engine calls the same, with a value."""
_SWITCHES: Final = (
    *("enable_prefix_caching", "enable_mamba_shared_prefix_checkpoint", "async_scheduling"),
    "use_replayssm",
)


_OFFLOADED_BYTES: Final = 2**28
"""Of the host, for what a cache of a tiny model has lost."""


def _own_flags(engine: EngineArgs) -> dict[str, str]:
    valued = {name.replace("_", "-"): getattr(engine, name) for name in _VALUED}
    ranks = {
        "data-parallel-size": engine.data_parallel_size,
        "tensor-parallel-size": engine.tensor_parallel_size or 1,
        "pipeline-parallel-size": engine.stages,
    }
    valued |= {name: number for name, number in ranks.items() if number > 1}
    flags = {name: str(value) for name, value in valued.items() if value is not None}
    for switch in _SWITCHES:
        name, wanted = switch.replace("_", "-"), getattr(engine, switch)
        if wanted is not None:
            flags[name if wanted else f"no-{name}"] = ""
    return flags


def _own_variables(engine: EngineArgs) -> dict[str, str]:
    """What a release may know as a variable alone: up to 0.29.0 the interval (``early.py``)."""
    valued = {
        "VLLM_PREFIX_CACHE_RETENTION_INTERVAL": engine.prefix_cache_retention_interval,
        "VLLM_SSM_CONV_STATE_LAYOUT": engine.conv_state_layout,
    }
    return {name: str(value) for name, value in valued.items() if value is not None}


def _speculation(engine: EngineArgs, draft: Path | None, models: Path) -> dict[str, str]:
    drafting = engine.speculation
    if drafting is None:
        return {}
    config = {
        "method": drafting.method,
        "num_speculative_tokens": drafting.drafts,
        "model": None if drafting.model is None else str(draft or models / drafting.model),
        "prompt_lookup_min": drafting.lookup_min,
        "prompt_lookup_max": drafting.lookup_max,
    }
    given = {key: value for key, value in config.items() if value is not None}
    return {"speculative-config": json.dumps(given)}


def _connector(engine: EngineArgs) -> dict[str, str]:
    if engine.kv_connector is None:
        return {}
    name = f"{engine.kv_connector.capitalize()}Connector"
    config: dict[str, object] = {"kv_connector": name, "kv_role": "kv_both"}
    if engine.kv_connector == "offloading":
        config["kv_connector_extra_config"] = {"cpu_bytes_to_use": _OFFLOADED_BYTES}
    else:
        module = f"hybridwatch_engine.{engine.kv_connector}_connector"
        config["kv_connector_module_path"] = module
    # Attention cache and Mamba state are handed over as two kinds of cache or not at all.
    return {"kv-transfer-config": json.dumps(config), "no-disable-hybrid-kv-cache-manager": ""}
