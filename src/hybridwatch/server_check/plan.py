"""Asks every relation within a time: learn first, then rounds, then the first requests again."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from hybridwatch.errors import ServerCheckError
from hybridwatch.server_check.client import (
    SALT,
    CheckClient,
    Request,
    RequestError,
    UnreachableError,
)
from hybridwatch.server_check.comparison import Rule, learn_margin
from hybridwatch.server_check.prompts import Prompts, source_text
from hybridwatch.server_check.relations.neighbours import (
    ask_abort,
    ask_company,
    ask_drift,
    ask_gauges,
    ask_idle,
    ask_short,
    read_gauges,
)
from hybridwatch.server_check.relations.prefixes import ask_cached, ask_long, ask_parts
from hybridwatch.server_check.relations.protocol import ask_count, ask_stop, ask_stream
from hybridwatch.server_check.result import CheckResult
from hybridwatch.server_check.session import Session

AT_ONCE: Final = 33
LONGEST_ANSWER: Final = 48
LONGEST_PROMPT: Final = 32_768
_SHORT: Final = (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33)
_LENGTHS: Final = (24, 48, 63, 64, 65, 90, 127, 128, 129, 150, 200, 40, 12, 257, 180, 20)
_ANSWERS: Final = (24, 48, 1, 16, 40, 6)
KNOWN: Final = 40
_FEWEST: Final = 4
_TRIES: Final = 3 * KNOWN
_AGAIN: Final = 10
_TO_LEARN: Final = 0.3
"""Share of the time in which answers are learned."""
_TO_ASK: Final = 0.92
"""Share of it after which no further relation is begun, but the last one."""
_PAUSES: Final = 0.03
"""Share of the time that a pause is at most."""
_PARAMETERS: Final = (
    ("logprobs", ("logprobs", "return_tokens_as_token_ids")),
    ("return_tokens_as_token_ids", ("return_tokens_as_token_ids",)),
    ("return_token_ids", ("return_token_ids",)),
    ("ignore_eos", ("ignore_eos",)),
)
"""What a server may refuse, and what goes with it."""

_ROUNDS: Final[tuple[tuple[str, Callable[[Session, int], Awaitable[None]]], ...]] = (
    ("company", ask_company),
    ("cached", ask_cached),
    ("short", ask_short),
    ("parts", ask_parts),
    ("stop", ask_stop),
    ("count", ask_count),
    ("stream", ask_stream),
    ("abort", ask_abort),
    ("idle", ask_idle),
    ("company", ask_company),
    ("long", ask_long),
    ("cached", ask_cached),
    ("drift", ask_drift),
)

Tell = Callable[[str, float], None]
"""Takes the relation that begins now, and which share of the time is over."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server is checked.

    Attributes:
        model: The name under which it knows its model; empty to ask it.
        key: Of its API; empty for none.
        gentle: Whether one request at a time is sent.
        strict: Whether answers must be equal bit for bit.
        pause_s: How long a pause of the relation *idle* is.
        rounds: Rounds at most.
        known: Requests that are answered alone at the beginning, at most.
        only: Names of the relations that are asked; empty for all.
    """

    url: str
    model: str = ""
    key: str = ""
    minutes: float = 2.0
    seed: int = 0
    gentle: bool = False
    strict: bool = False
    pause_s: float = 3.0
    rounds: int = 10_000
    known: int = KNOWN
    only: tuple[str, ...] = ()

    @property
    def at_once(self) -> int:
        """Requests in flight at most."""
        return 1 if self.gentle else AT_ONCE

    def load(self) -> str:
        """Say what the server will have to bear at most."""
        return (
            f"about {self.minutes:g} min, at most {self.at_once} request{'s' * (not self.gentle)} "
            f"at a time, prompts of at most {LONGEST_PROMPT} tokens, answers of at most "
            f"{LONGEST_ANSWER}"
        )


async def check_server(settings: Settings, tell: Tell = lambda *_: None) -> CheckResult:
    """Check a server; what is known so far stays when it goes away or the caller cancels.

    Raises:
        ServerCheckError: The address is none, or no request is answered at the beginning.
    """
    begun = time.monotonic()
    async with CheckClient(settings.url, settings.key) as client:
        result = CheckResult(client.url)
        result.errors = client.errors
        try:
            await _check(settings, client, result, begun, tell)
        except UnreachableError as error:
            result.stopped = str(error)
        except asyncio.CancelledError:
            result.interrupted, result.stopped = True, "interrupted"
        result.requests = client.requests
        result.minutes = (time.monotonic() - begun) / 60
    return result


async def _check(
    settings: Settings, client: CheckClient, result: CheckResult, begun: float, tell: Tell
) -> None:
    seconds = settings.minutes * 60
    session = Session(
        client,
        result,
        random.Random(settings.seed),  # noqa: S311 - prompts, no secrets
        ends_at=begun + _TO_ASK * seconds,
        at_once=settings.at_once,
        pause_s=min(settings.pause_s, _PAUSES * seconds),
    )

    def report(what: str) -> None:
        tell(what, min(1.0, (time.monotonic() - begun) / seconds))

    report("what the server takes")
    await _meet(session, settings.model)
    report("answers to requests alone")
    await _learn_answers(session, settings.known, begun + _TO_LEARN * seconds)
    report("how far rounding goes")
    await _learn_rule(session, strict=settings.strict)
    await session.alone(session.known[:1])
    before = await read_gauges(session)
    await _ask_rounds(session, settings, report)
    if not settings.only or "drift" in settings.only:
        report("drift")
        await ask_drift(session, 0)
        await ask_gauges(session, before)


async def _meet(session: Session, model: str) -> None:
    """Find the model's name, what requests may ask, and how prompts are written."""
    client, result = session.client, session.result
    listed = await _models(client, needed=not model)
    client.model = model or str(listed[0]["id"])
    result.model = client.model
    found = next((one for one in listed if one.get("id") == client.model), {})
    session.room = int(found.get("max_model_len") or 0)
    await _drop_refused(session)
    try:
        await _choose_prompts(session)
    except RequestError as error:
        raise ServerCheckError(f"{client.url}: does not answer a request: {error}") from error


async def _models(client: CheckClient, *, needed: bool) -> list[dict[str, Any]]:
    try:
        listed = (await client.read("/v1/models")).json()["data"]
        if listed or not needed:
            return list(listed)
    except (RequestError, ValueError, KeyError, TypeError) as error:
        if not needed and isinstance(error, RequestError) and error.is_refusal:
            return []
        raise ServerCheckError(f"{client.url}/v1/models: no list of models: {error}") from error
    raise ServerCheckError(f"{client.url}/v1/models: empty; name one with --model")


async def _drop_refused(session: Session) -> None:
    """Do without the parameters that the server refuses."""
    client = session.client
    whole = client.extras
    probe = Request("The river is 12.\nThe stone is", 4)
    client.extras = {}
    try:
        await client.ask(probe)
    except RequestError as error:
        raise ServerCheckError(f"{client.url}: does not answer a request: {error}") from error
    taken = dict(whole)
    for name, together in _PARAMETERS:
        client.extras = {key: whole[key] for key in together if key in taken}
        if name in taken and (why := await _refusal(session, probe)):
            session.result.refused[name] = why
            taken.pop(name)
    client.extras = taken
    if why := await _refusal(session, replace(probe, salt=session.new_salt())):
        session.result.refused[SALT] = why
        client.takes_salt = False


async def _refusal(session: Session, request: Request) -> str:
    """Say why a server refuses a request; empty if it takes it."""
    try:
        await session.client.ask(request)
    except RequestError as error:
        if not error.is_refusal:
            raise ServerCheckError(f"{session.client.url}: {error}") from error
        session.client.discount(error)
        return str(error)
    return ""


async def _choose_prompts(session: Session) -> None:
    """Take token ids for prompts where the server names those of a text and takes them."""
    text = source_text(session.rng)
    if session.room:
        text = text[: session.room // 2]
    reply = await session.client.ask_whole(Request(text, 1))
    words = len(text.split(" "))
    usage = reply.usage
    session.prompts = Prompts(session.rng, (), usage.prompt / words if usage else 1.5)
    if len(reply.prompt_ids) > 1:
        ids = Prompts(session.rng, reply.prompt_ids[1:], 1.0)  # without a mark of the beginning
        if not await _refusal(session, Request(ids.make(8), 1)):
            session.prompts = ids
            return
    session.result.refused["prompts as token ids"] = "the server does not name or take them"


async def _learn_answers(session: Session, wanted: int, until: float) -> None:
    """Ask requests of many lengths alone.

    Raises:
        ServerCheckError: Hardly any is answered.
    """
    tries = 0
    lengths = [size for pair in zip(_LENGTHS, _SHORT * 2, strict=False) for size in pair]
    while len(session.known) < wanted:
        at = tries
        size, answer = lengths[at % len(lengths)], _ANSWERS[at % len(_ANSWERS)]
        if session.room:
            size = min(size, session.room - LONGEST_ANSWER - 1)
        known = await session.try_to_learn(session.make_request(max(1, size), answer))
        tries += 1
        if known is not None:
            session.known.append(known)
        if known is not None and size in _SHORT:
            session.short.append(known)
        if tries >= _TRIES or (time.monotonic() > until and len(session.known) >= _FEWEST):
            break
    if len(session.known) < _FEWEST:
        failed = ", ".join(f"{count} x {kind}" for kind, count in session.client.errors.items())
        raise ServerCheckError(
            f"{session.client.url}: expected {_FEWEST} answers of {tries} requests, "
            f"found {len(session.known)} ({failed})"
        )


async def _learn_rule(session: Session, *, strict: bool) -> None:
    """Ask one request ten times alone, then beside others, and see how far logarithms move."""
    long_enough = [one for one in session.known if len(one.answer.tokens) > 1] or session.known
    one = session.rng.choice(long_enough)
    pairs = []
    for _ in range(_AGAIN):
        answer = await session.answer(replace(one.request, salt=session.new_salt()))
        if answer is not None:
            pairs.append((one.answer, answer))
    for _ in range(3 if session.at_once > 1 else 0):
        items = [one, *session.draw(4)]
        answers = await session.together(items)
        pairs += [
            (known.answer, answer)
            for known, answer in zip(items, answers, strict=True)
            if answer is not None
        ]
    margin = learn_margin(pairs)
    session.rule = Rule(margin, strict)
    session.result.margin = 0.0 if strict else margin


async def _ask_rounds(session: Session, settings: Settings, report: Callable[[str], None]) -> None:
    rounds = [(name, ask) for name, ask in _ROUNDS if not settings.only or name in settings.only]
    asked = dict.fromkeys((name for name, _ in rounds), 0)
    for _ in range(settings.rounds):
        for name, ask in rounds:
            if session.is_over:
                return
            report(name)
            await ask(session, asked[name])
            asked[name] += 1
