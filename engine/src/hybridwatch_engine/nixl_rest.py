"""Let NIXL's progress thread rest while nothing arrives.

NIXL's Python interface tells that thread to look for messages without a pause, which costs each
engine of a pair a whole core from its start to its end; on a small machine the engines then wait
for each other's progress threads. Given a pause, the thread sleeps on its sockets instead and a
message still wakes it at once.
"""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet

_PAUSE_US = 1000


def _with_pause(create: Callable[..., Any]) -> Callable[..., Any]:
    def agent(name: str, config: Any) -> Any:
        config.pthrDelay = _PAUSE_US
        return create(name, config)

    return agent


def _resting(load: Callable[..., Any]) -> Callable[..., Any]:
    # vLLM imports NIXL when it needs it, after it has set what NIXL reads while it is loaded.
    def loaded(name: str) -> Any:
        value = load(name)
        if name == "NixlWrapper" and value is not None:
            _pause(importlib.import_module(value.__module__).nixlBind).install()
        return value

    return loaded


@cache
def _pause(bindings: Any) -> PatchSet:
    return PatchSet(Patch(bindings, "nixlAgent", _with_pause))


@cache
def resting_progress() -> PatchSet:
    """The patch, made once per process."""
    utils = importlib.import_module("vllm.distributed.nixl_utils")
    return PatchSet(Patch(utils, "_load_nixl_attr", _resting))
