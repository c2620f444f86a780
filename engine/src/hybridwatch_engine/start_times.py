"""How long a worker took to load its model, to compile it and to capture graphs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

from hybridwatch_engine.model_runner import steps, worker_class
from hybridwatch_engine.patch import Patch, PatchSet

SECONDS: dict[str, float] = {}
"""Of this process, by metric; a phase that it does not have is left out."""


@contextmanager
def phase(name: str, has_run: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Add the time of a block to a phase, if that turns out to have run."""
    begin = time.perf_counter()
    yield
    if has_run():
        SECONDS[name] = SECONDS.get(name, 0.0) + time.perf_counter() - begin


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def load_model(*args: Any, **kwargs: Any) -> Any:
        with phase("weights_time"):
            return original(*args, **kwargs)

    return load_model


def _capturing(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)  # its parameters are looked at
    def capture_model(*args: Any, **kwargs: Any) -> Any:
        from vllm.compilation.counter import compilation_counter as counter

        # Without graphs it returns at once, and counts no capture.
        before = counter.num_gpu_runner_capture_triggers
        with phase("capture_time", lambda: counter.num_gpu_runner_capture_triggers > before):
            return original(*args, **kwargs)

    return capture_model


@cache
def timed_start() -> PatchSet:
    """The hooks, made once per process."""
    return PatchSet(
        Patch(worker_class(), "load_model", _loading),
        *(Patch(runner, "capture_model", _capturing) for runner, _ in steps()),
    )


def tell_start(runner: Any) -> dict[str, float]:
    """Tell the seconds of each phase; those of torch.compile are vLLM's own count."""
    config = runner.vllm_config.compilation_config
    compiled = config.compilation_time + getattr(config, "encoder_compilation_time", 0.0)
    return SECONDS | ({"compile_time": compiled} if compiled else {})
