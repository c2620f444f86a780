"""Calls of the control channel answered by every data-parallel rank.

vLLM calls a worker method on all engine cores of a data-parallel engine and hands out the first
core's answer alone (``v1/engine/core_client.py``). A probe needs what every rank saw.
"""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


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
    """The hook, made once per process.

    Raises:
        AttributeError: This release has renamed the client.
    """
    from vllm.v1.engine.core_client import DPLBAsyncMPClient

    return PatchSet(Patch(DPLBAsyncMPClient, "call_utility_async", _of_all_cores))
