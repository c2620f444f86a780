"""Set-up of a process before vLLM is imported, and so before vLLM loads a plugin."""

import ctypes
import os
import signal
from typing import Final

from hybridwatch_engine.connections import loopback_rendezvous
from hybridwatch_engine.cpu.runner_kernels.launch import stand_ins
from hybridwatch_engine.cpu.triton_interpreter import interpret_triton
from hybridwatch_engine.settings import from_environment
from hybridwatch_engine.source import SourceTree, engine_distribution, mentions

_PR_SET_PDEATHSIG: Final = 1
"""Of ``prctl(2)``: the signal that the kernel sends when the thread that started us ends."""

_INTERVAL: Final = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"


def end_with_parent() -> None:
    """End this process with the one that started it, also when that is killed.

    vLLM's engine core and workers would outlive a killed server, and wait for requests for ever.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def prepare() -> None:
    """Keep the process off the network, and choose the model runner of the settings.

    Processes that vLLM starts inherit the choice by their environment; those that it spawns call
    this too, by importing the main module of their parent.

    Raises:
        RuntimeError: The settings choose model runner V2, which cannot run here.
        ValueError: The settings are invalid.
    """
    loopback_rendezvous().install()
    settings = from_environment()
    runner = settings.model_runner
    if runner is None:
        return
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1" if runner == "v2" else "0"
    if runner == "v2" and _is_for_cpu():
        interpret_triton()
        if not settings.interpret_kernels:
            stand_ins().install()


def interval_arguments(tree: SourceTree) -> list[str]:
    """The server's argument for how many states are kept, where 0.30.0 took the variable out."""
    interval, variables = os.environ.get(_INTERVAL), tree.module("envs.py")
    if interval is None or (variables is not None and mentions(variables, _INTERVAL)):
        return []
    return ["--prefix-cache-retention-interval", interval]


def _is_for_cpu() -> bool:
    """Whether the installed engine is built for CPUs; by name and version, as in vLLM."""
    distribution = engine_distribution()
    return "cpu" in f"{distribution.metadata['Name']} {distribution.version}"
