"""How the processes of an engine meet, wait for each other, and answer.

The process group's rendezvous is kept off the network: ``torch.distributed`` lets its TCP store
listen on every interface, also when all processes live on this machine. A store whose host is the
loopback address gets a socket that listens there only.

NIXL's progress thread rests while nothing arrives. NIXL's Python interface sets that thread to
look for messages without a pause, which costs each engine of a pair a whole core from its start to
its end; on a small machine the engines then wait for each other's progress threads. Given a pause,
the thread sleeps on its sockets instead and a message still wakes it at once.

Calls of the control channel are answered by every data-parallel rank. vLLM calls a worker method on
all engine cores of a data-parallel engine and hands out the first core's answer alone
(``v1/engine/core_client.py``). A probe needs what every rank saw.
"""

import asyncio
import importlib
import socket
from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet

_BACKLOG = 128


def _loopback_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def store(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("is_master") and kwargs.get("host_name") in {"127.0.0.1", "localhost"}:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind(("127.0.0.1", kwargs["port"]))
            listener.listen(_BACKLOG)
            kwargs["master_listen_fd"] = listener.detach()  # the store closes it
        return original(*args, **kwargs)

    return store


@cache
def loopback_rendezvous() -> PatchSet:
    """The patch, made once per process."""
    # Not "from torch.distributed import rendezvous": a function of that name hides the module.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    return PatchSet(Patch(rendezvous, "TCPStore", _loopback_only))


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


def _of_all_cores(original: Callable[..., Any]) -> Callable[..., Any]:
    async def call_utility_async(client: Any, method: str, *args: Any) -> Any:
        if method != "collective_rpc":
            return await original(client, method, *args)
        answers = await asyncio.gather(
            *(
                client._call_utility_async(method, *args, engine=core)  # noqa: SLF001
                for core in client.core_engines
            )
        )
        return [answer for workers in answers for answer in workers]

    return call_utility_async


@cache
def every_rank() -> PatchSet:
    """The hook, made once per process."""
    from vllm.v1.engine.core_client import DPLBAsyncMPClient

    return PatchSet(Patch(DPLBAsyncMPClient, "call_utility_async", _of_all_cores))
