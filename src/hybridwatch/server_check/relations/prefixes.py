"""Relations of a prompt to its own beginning: from the cache, as an answer, and long ones."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.client import Request, RequestError
from hybridwatch.server_check.prompts import joined
from hybridwatch.server_check.session import Known, Session

_ENDS: Final = (128, 512, 16, 256, 64, 32)
"""Tokens at which blocks of a cache end, as far as block sizes are known; long ones first."""
_DRAWN_ENDS: Final = range(528, 2049, 16)
"""Others: vLLM makes a hybrid's blocks as long as a Mamba state is large."""
_OFF: Final = (-1, 0, 1)
_ANSWER: Final = 16
_TURN: Final = 24
"""Tokens of an answer that reaches over the end of a block, from at most half as many before it."""
_TURNS: Final = 2
_ADAPTERS: Final = 2
_LONG: Final = (1024, 6144, 32768)
_SLOW_S: Final = 10.0
"""A long prompt that takes longer alone is not made longer still."""


def room_for_prompt(session: Session, answer: int) -> int:
    """Give the tokens that a prompt may have."""
    return session.room - answer if session.room else _LONG[0]


async def ask_cached(session: Session, number: int) -> None:
    """Ask new prompts, the same again, and others that begin alike.

    The second time a prompt comes from the cache; one that only begins alike takes a part of it.
    Two prompts take turns, as a hit may go on from the state that the hit before it has found.
    """
    end = _choose_end(session, number)
    if not end:
        session.tally("cached").reason = "the server takes no prompt of more than a block"
        return
    new = [await session.try_to_learn(session.make_request(end + 24, _ANSWER)) for _ in range(2)]
    session.tally("cached")
    known = [one for one in new if one is not None]
    if not known:
        return
    for _ in range(2):
        await session.hold("cached", known, lambda items: cached(session, items))
    if session.at_once > 1:
        await session.hold("cached", known, lambda items: _cached_together(session, items))
    first = known[0]
    if session.client.takes_salt and session.prompts.are_ids:
        await _ask_beginnings(session, first, end)
    if session.client.takes_salt and session.adapters:
        await _ask_adapters(session, first)


def _choose_end(session: Session, number: int) -> int:
    """Choose where a block may end; 0 where no prompt is that long."""
    longest = room_for_prompt(session, _ANSWER) - 40
    ends = [end for end in _ENDS if end <= longest]
    drawn = [end for end in _DRAWN_ENDS if end <= longest]
    if drawn and number % 3 == 2:
        return session.rng.choice(drawn)
    return ends[number % len(ends)] if ends else 0


async def cached(session: Session, items: Sequence[Known]) -> list[Answer | None]:
    """Ask again in the same part of the cache, after what fills it."""
    found = []
    for known in items:
        for request in known.before:
            await session.answer(request)
        found.append(await session.answer(known.request))
    return found


async def _ask_beginnings(session: Session, first: Known, end: int) -> None:
    """Ask prompts that begin as one in the cache, up to before, on and after the end of a block."""
    prompt = first.request.prompt
    assert isinstance(prompt, tuple)  # noqa: S101 - prompts are ids here
    items = []
    for off in _OFF:
        tail = session.prompts.make(session.rng.randrange(1, 24))
        whole = joined(prompt[: end + off], tail)
        request = Request(whole, _ANSWER, session.new_salt())
        known = await session.try_to_learn(request)
        if known is not None:
            fills = (first.request,)
            items.append(
                replace(known, request=replace(request, salt=first.request.salt), before=fills)
            )
    if not items:
        return
    await session.hold("cached", items, lambda some: cached(session, some))
    if session.at_once > 1:
        await session.hold("cached", items, lambda some: _cached_together(session, some))


async def _ask_adapters(session: Session, first: Known) -> None:
    """Ask adapters for a prompt that another one, or the model alone, has put into the cache."""
    items = []
    for name in session.rng.sample(session.adapters, min(_ADAPTERS, len(session.adapters))):
        request = first.request.with_more(model=name)
        known = await session.try_to_learn(replace(request, salt=session.new_salt()))
        if known is not None:
            items.append(replace(known, request=request, before=(first.request,)))
    await session.hold("cached", items, lambda some: cached(session, some))


async def _cached_together(session: Session, items: Sequence[Known]) -> list[Answer | None]:
    """Ask at once what the cache has whole or in part."""
    return await asyncio.gather(*(session.answer(known.request) for known in items))


async def ask_parts(session: Session, number: int) -> None:
    """Put the beginning of an answer behind its prompt: the rest must follow."""
    tally = session.tally("parts")
    items = [part for known in session.draw(3) if (part := part_of(session, known)) is not None]
    if not items:
        tally.reason = tally.reason or "the server names no token ids"
        return
    await session.hold("parts", items, session.alone)
    if end := _choose_end(session, number):
        await _ask_turns(session, end)


async def _ask_turns(session: Session, end: int) -> None:
    """Go on from answers that reach over the end of a block, as new prompts and from the cache.

    There a refused draft may have left the state of another step, and what an answer stored is what
    the next turn of a conversation begins with.
    """
    turns = []
    for _ in range(_TURNS):
        size = end - session.rng.randrange(1, _TURN // 2)
        known = await session.try_to_learn(session.make_request(size, _TURN))
        if known is not None and end - size + 1 < len(known.answer.ids):
            cut = session.rng.randrange(end - size + 1, len(known.answer.ids))
            turns.append(_cut(session, known, cut))
    await session.hold("parts", turns, session.alone)
    if session.client.takes_salt:
        warm = [
            replace(turn, request=replace(turn.request, salt=turn.before[0].salt)) for turn in turns
        ]
        await session.hold("cached", warm, lambda some: cached(session, some))


def part_of(session: Session, known: Known) -> Known | None:
    """Move a part of an answer into its prompt; ``None`` where token ids are not known."""
    prompt, answer = known.request.prompt, known.answer
    if not isinstance(prompt, tuple) or len(answer.ids) < 2:
        return None
    cut = session.rng.randrange(1, len(answer.ids))
    to_end = 16 - len(prompt) % 16
    if to_end < len(answer.ids) and session.rng.random() < 0.5:
        cut = to_end
    return _cut(session, known, cut)


def _cut(session: Session, known: Known, cut: int) -> Known:
    """Move so many tokens of an answer into its prompt."""
    answer = known.answer
    request = Request(
        joined(known.request.prompt, answer.ids[:cut]),
        known.request.max_tokens - cut,
        session.new_salt(),
    )
    return Known(request, answer.from_token(cut), (known.request,), known.seconds)


async def ask_long(session: Session, number: int) -> None:
    """Ask a long prompt alone, with others, and again from the cache."""
    tally = session.tally("long")
    room = room_for_prompt(session, _ANSWER)
    sizes = [size for size in _LONG if size < room] or [room * 3 // 4]
    size = min(sizes[number % len(sizes)], session.longest_prompt)
    if number % 3 == 1 and session.room and room <= session.longest_prompt:
        size = room  # up to the last token that the server takes
    try:
        known = await session.learn(session.make_request(size, _ANSWER))
    except RequestError as error:
        if error.is_refusal:
            session.client.discount(error)
            session.longest_prompt = size // 2
            tally.reason = f"prompts of {size} tokens: {error}"
        return
    if known.seconds > _SLOW_S:
        session.longest_prompt = size
    if not session.is_over:
        await session.hold("long", [known], lambda items: cached(session, items))
    if session.at_once > 1 and not session.is_over:
        scene = session.staggered if number % 2 else session.together
        await session.hold("long", [known, *session.draw(4)], scene)
