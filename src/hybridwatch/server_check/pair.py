"""What is asked of two servers at once: the same requests in a drawn order, and questions."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from hybridwatch.server_check.answer import ID_PREFIX, Reply
from hybridwatch.server_check.client import CheckClient, Request, RequestError
from hybridwatch.server_check.result import PairResult, Question, Side, TimedBlock
from hybridwatch.server_check.session import Known, Session

_PROMPTS: Final = (96, 160, 320)
"""Tokens of the prompts of a block: few, so that both sides meet the same state of a machine."""
_ANSWER: Final = 24
TASK: Final = "recall"
"""The embedded task whose questions any language model can answer: find a value in a list."""
TASK_VERSION: Final = "1"
_QUESTIONS: Final = 100
_AT_ONCE: Final = 8
_LONGEST: Final = 32
"""Tokens of an answer, as the task has them for lm-eval."""


async def read_release(client: CheckClient) -> str:
    """Read the server's version as vLLM reports it; empty where it does not."""
    with suppress(RequestError, ValueError, KeyError, TypeError):
        return str((await client.read("/version")).json()["version"])
    return ""


async def ask_alike(one: CheckClient, other: CheckClient) -> None:
    """Ask both servers only what both take, and for tokens by the same kind of names."""
    extras = {key: value for key, value in one.extras.items() if key in other.extras}
    one.extras, other.extras = extras, dict(extras)
    one.takes_salt = other.takes_salt = one.takes_salt and other.takes_salt
    probe = Request("The river is 12.\nThe stone is", 4)
    answers = [await client.ask(probe) for client in (one, other)]
    by_id = {all(name.startswith(ID_PREFIX) for name in answer.tokens) for answer in answers}
    if len(by_id) > 1:  # one of them ignores what it does not know
        for client in (one, other):
            client.extras.pop("return_tokens_as_token_ids", None)


def _pair_result(session: Session) -> PairResult:
    if session.result.pair is None:
        raise ValueError("one server has no pair")
    return session.result.pair


def _in_drawn_order(session: Session) -> Sequence[int]:
    return session.rng.sample((0, 1), 2)


async def ask_timed(session: Session, _number: int) -> None:
    """Ask both servers new requests, one by one in a drawn order, then the same at once."""
    requests = [
        replace(session.make_request(session.fitting(size), _ANSWER), streamed=True)
        for size in _PROMPTS
    ]
    block = TimedBlock(datetime.now(UTC))
    for request in requests:
        replies: list[Reply | None] = [None, None]
        for side in _in_drawn_order(session):
            with suppress(RequestError):
                reply = await session.clients[side].ask_whole(request)
                replies[side] = reply if reply.is_whole else None
        old, new = replies
        if old is None or new is None:
            continue
        block.sides[0].add(old)
        block.sides[1].add(new)
        whole = replace(request, streamed=False)
        known = Known(whole, replace(old.answers[0], text=None), seconds=old.seconds)
        answer = replace(new.answers[0], text=None)
        await session.note("tokens", [known], [answer], session.alone)
    if session.at_once > 1 and len(block.sides[0].ttft) == len(requests):
        for side in _in_drawn_order(session):
            await _ask_at_once(session, session.clients[side], requests, block.sides[side])
    if block.sides[0].ttft:
        _pair_result(session).blocks.append(block)


async def _ask_at_once(
    session: Session, client: CheckClient, requests: Sequence[Request], side: Side
) -> None:
    """Measure tokens per second of some requests at once; nothing where one has no answer."""
    fresh = [replace(request, salt=session.new_salt()) for request in requests]
    begun = time.monotonic()
    with suppress(RequestError):
        replies = await asyncio.gather(*(client.ask_whole(request) for request in fresh))
        tokens = sum(len(reply.answers[0].tokens) for reply in replies)
        side.throughput = tokens / (time.monotonic() - begun)


async def ask_questions(session: Session, until: float) -> None:
    """Ask both servers the questions of a task whose answers are known."""
    from hybridwatch.measurement.accuracy.embedded import TASKS_DIRECTORY, read_documents

    tally, pair = session.tally("answers"), _pair_result(session)
    documents = read_documents(TASKS_DIRECTORY / f"{TASK}.jsonl")[:_QUESTIONS]
    step = min(_AT_ONCE, session.at_once)
    for begin in range(0, len(documents), step):
        some = documents[begin : begin + step]
        requests = [_question(session, one.prompt) for one in some]
        texts: list[list[str | None]] = [[], []]
        for side in _in_drawn_order(session):
            client = session.clients[side]
            texts[side] = await asyncio.gather(*(_text(client, one) for one in requests))
        for document, request, *responses in zip(some, requests, *texts, strict=True):
            old, new = responses
            if old is None or new is None:
                continue
            tally.checked += 1
            curl = tuple(client.curl(request) for client in session.clients)
            pair.questions.append(Question(document.prompt, document.answer, (old, new), curl))
        if time.monotonic() > until:
            break


def _question(session: Session, prompt: str) -> Request:
    request = Request(prompt, _LONGEST, session.new_salt()).with_more(stop=["\n"])
    takes_end = "ignore_eos" in session.client.extras
    return request.with_more(ignore_eos=False) if takes_end else request


async def _text(client: CheckClient, request: Request) -> str | None:
    try:
        return ((await client.ask(request)).text or "").strip()
    except RequestError:
        return None
