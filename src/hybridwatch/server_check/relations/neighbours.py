"""Relations of a request to what is in flight with it, and to what was before it."""

import asyncio
from collections.abc import Sequence
from typing import Final

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.client import Request, RequestError
from hybridwatch.server_check.result import Break
from hybridwatch.server_check.session import Known, Session

_FEW: Final = (1, 2, 3, 5)
_MANY: Final = (32, 8)
_LEAVERS: Final = 4
_STAYING: Final = 5
_STORMS: Final = 2


async def ask_company(session: Session, number: int) -> None:
    """Ask known requests with a few others and with many, at once and staggered."""
    if session.at_once == 1:
        session.tally("company").reason = "one request at a time"
        return
    for few in _FEW:
        scene = session.staggered if (number + few) % 2 else session.together
        await session.hold("company", session.draw(few + 1), scene)
        if session.is_over:
            return
    many = session.draw(_MANY[number % len(_MANY)] + 1)
    await session.hold("company", many, session.together if number % 4 < 2 else session.staggered)


async def ask_short(session: Session, number: int) -> None:
    """Ask short prompts alone, and while longer requests are answered."""
    items = session.rng.sample(session.short, min(len(session.short), 6))
    if number % 2 == 0 or session.at_once == 1:
        await session.hold("short", items, session.alone)
        return
    companions = session.draw(max(1, min(4, session.at_once - len(items))))
    scene = session.together if number % 4 == 1 else session.staggered
    await session.hold("short", [*items, *companions], scene)


async def ask_abort(session: Session, number: int) -> None:
    """Let clients go away in the middle of others, and look at the others and at who comes next."""
    if session.at_once == 1:
        session.tally("abort").reason = "one request at a time"
        return

    async def leaving(items: Sequence[Known]) -> list[Answer | None]:
        leavers = [
            Request(one.request.prompt, session.longest_answer, session.new_salt())
            for one in session.draw(_LEAVERS)
        ]
        staying = asyncio.ensure_future(session.staggered(items))
        goings = (session.client.leave(one, chunks=at * 3) for at, one in enumerate(leavers))
        await asyncio.gather(staying, *goings)
        return staying.result()

    await session.hold("abort", session.draw(_STAYING), leaving)
    if not session.is_over:
        await session.hold(
            "abort", session.draw(3), session.together if number % 2 else session.alone
        )


async def ask_idle(session: Session, number: int) -> None:
    """Ask after a pause, and after twice as many requests as may be in flight."""

    async def after_pause(items: Sequence[Known]) -> list[Answer | None]:
        await asyncio.sleep(session.pause_s)
        return await session.alone(items)

    async def after_storm(items: Sequence[Known]) -> list[Answer | None]:
        storm = [
            Request(one.request.prompt, 4, session.new_salt())
            for one in session.draw(session.at_once)
        ]
        for _ in range(_STORMS):
            await asyncio.gather(*(session.answer(one) for one in storm))
        return await session.alone(items)

    if number % 2 == 0 or session.at_once == 1:
        await session.hold("idle", session.draw(3), after_pause)
    if number % 2 == 1 and session.at_once > 1:
        await session.hold("idle", session.draw(3), after_storm)


async def ask_drift(session: Session, _number: int) -> None:
    """Ask the first requests once more."""
    await session.hold("drift", session.known[:8], session.alone)


async def read_gauges(session: Session) -> dict[str, float]:
    """Read what the server reports of its load and its cache; empty where it reports nothing."""
    try:
        text = (await session.client.read("/metrics")).text
    except RequestError:
        return {}
    found: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        kind = _GAUGES.get(name)
        if kind is not None:
            found[kind] = found.get(kind, 0.0) + float(line.rpartition(" ")[2])
    return found


_GAUGES: Final = {
    "vllm:kv_cache_usage_perc": "cache",
    "vllm:gpu_cache_usage_perc": "cache",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "running",
    "sglang:token_usage": "cache",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "running",
}


async def ask_gauges(session: Session, before: dict[str, float]) -> None:
    """Note a cache that is still in use when nothing runs; other clients end the question."""
    tally = session.tally("drift")
    if "cache" not in before:
        tally.reason = "no gauge of cache use at /metrics"
        return
    after: dict[str, float] = {}
    for _ in range(_LOOKS):
        await session.alone(session.known[:1])
        after = await read_gauges(session)
        if not after or after["cache"] <= before["cache"] + _CACHE_ROUNDING:
            return
        await asyncio.sleep(session.pause_s)
    if before.get("running") or after.get("running"):
        tally.reason = "other requests are running, so cache use shows nothing"
        return
    said = "cache use did not come back when every request had ended"
    commands = (f"curl -s {session.client.url}/metrics",)
    tally.add_break(Break(said, before["cache"], after["cache"], commands))


_CACHE_ROUNDING: Final = 1e-3
_LOOKS: Final = 3
