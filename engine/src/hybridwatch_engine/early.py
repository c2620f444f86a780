"""What must be so before vLLM is imported, which is before it loads any plugin."""

import os

from hybridwatch_engine.cpu.triton_interpreter import interpret_triton
from hybridwatch_engine.loopback import loopback_rendezvous
from hybridwatch_engine.settings import from_environment
from hybridwatch_engine.source import engine_distribution


def prepare() -> None:
    """Keep the process off the network, and choose the model runner that the harness asks for.

    Processes that vLLM starts inherit the choice by their environment; those that it spawns call
    this too, by importing the main module of their parent.

    Raises:
        RuntimeError: Model runner V2 is asked for and cannot run here.
        ValueError: The settings make no sense.
    """
    loopback_rendezvous().install()
    runner = from_environment().model_runner
    if runner is None:
        return
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1" if runner == "v2" else "0"
    if runner == "v2" and _is_for_cpu():
        interpret_triton()


def _is_for_cpu() -> bool:
    """Whether the installed engine is built for CPUs; as vLLM tells it, by name and version."""
    found = engine_distribution()
    return "cpu" in f"{found.metadata['Name']} {found.version}"
