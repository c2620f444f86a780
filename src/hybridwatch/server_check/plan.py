"""Asks every relation within a time: learn first, then rounds, then the first requests again."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
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
from hybridwatch.server_check.pair import ask_alike, ask_questions, ask_timed, read_release
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
from hybridwatch.server_check.relations.parameters import ask_parameters
from hybridwatch.server_check.relations.prefixes import ask_cached, ask_long, ask_parts
from hybridwatch.server_check.relations.protocol import ask_count, ask_stop, ask_stream
from hybridwatch.server_check.result import PAIR_RELATIONS, CheckResult, PairResult, Tally
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
_TO_ASK_QUESTIONS: Final = 0.45
"""Share of it after which no further question of a task is asked."""
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
    ("parameters", ask_parameters),
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
        against: Another server, which is checked by the answers of the first; empty for none.
        model: The name under which they know their model; empty for the first of each.
        key: Of its API; empty for none.
        gentle: Whether one request at a time is sent.
        strict: Whether answers must be equal bit for bit.
        pause_s: How long a pause of the relation *idle* is.
        rounds: Rounds at most.
        known: Requests that are answered alone at the beginning, at most.
        only: Names of the relations that are asked; empty for all.
    """

    url: str
    against: str = ""
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
        each = " to each server" * bool(self.against)
        return (
            f"about {self.minutes:g} min, at most {self.at_once} request{'s' * (not self.gentle)} "
            f"at a time{each}, prompts of at most {LONGEST_PROMPT} tokens, answers of at most "
            f"{LONGEST_ANSWER}"
        )


async def check_server(settings: Settings, tell: Tell = lambda *_: None) -> CheckResult:
    """Check a server; what is known so far stays when it goes away or the caller cancels.

    Raises:
        ServerCheckError: The address is none, or no request is answered at the beginning.
    """
    begun = time.monotonic()
    async with AsyncExitStack() as stack:
        urls = filter(None, (settings.url, settings.against))
        clients = [await stack.enter_async_context(CheckClient(url, settings.key)) for url in urls]
        result = CheckResult(clients[0].url, gentle=settings.gentle, strict=settings.strict)
        if settings.against:
            result.pair = PairResult(clients[1].url)
            result.tallies = {name: Tally(name) for name in PAIR_RELATIONS} | result.tallies
        try:
            await _check(settings, clients, result, begun, tell)
        except UnreachableError as error:
            result.stopped = str(error)
        except asyncio.CancelledError:
            result.interrupted, result.stopped = True, "interrupted"
        for client in clients:
            result.requests += client.requests
            of = f" of {client.url}" if settings.against else ""
            result.errors += Counter({kind + of: n for kind, n in client.errors.items()})
        result.minutes = (time.monotonic() - begun) / 60
    if result.pair is not None and not result.interrupted:
        from hybridwatch.server_check.record import judge_pair

        judge_pair(result, result.pair)
    return result


async def _check(
    settings: Settings,
    clients: Sequence[CheckClient],
    result: CheckResult,
    begun: float,
    tell: Tell,
) -> None:
    seconds = settings.minutes * 60
    session = Session(
        clients[-1],
        result,
        random.Random(settings.seed),  # noqa: S311 - prompts, no secrets
        ends_at=begun + _TO_ASK * seconds,
        at_once=settings.at_once,
        pause_s=min(settings.pause_s, _PAUSES * seconds),
        reference=clients[0],
    )

    def report(what: str) -> None:
        tell(what, min(1.0, (time.monotonic() - begun) / seconds))

    report("what the server takes")
    await _meet(session, settings.model)
    report("answers to requests alone")
    await _learn_answers(session, settings.known, begun + _TO_LEARN * seconds)
    report("how far rounding goes")
    await _learn_rule(session, strict=settings.strict)
    if session.is_pair and _is_wanted(settings, "answers"):
        report("answers to questions")
        await ask_questions(session, begun + _TO_ASK_QUESTIONS * seconds)
    await session.alone(session.known[:1])
    before = await read_gauges(session)
    await _ask_rounds(session, settings, report)
    if _is_wanted(settings, "drift"):
        report("drift")
        await ask_drift(session, 0)
        await ask_gauges(session, before)


async def _meet(session: Session, model: str) -> None:
    """Find the model's name, what requests may ask, and how prompts are written."""
    adapters: list[set[str]] = []
    for client in session.clients:
        listed = await _models(client, needed=not model)
        client.model = model or str(listed[0]["id"])
        found = next((one for one in listed if one.get("id") == client.model), {})
        room = int(found.get("max_model_len") or 0)
        session.room = min(room, session.room) if room and session.room else room or session.room
        adapters.append({str(one["id"]) for one in listed if one.get("parent") == client.model})
        await _drop_refused(session, client)
        session.result.releases.append(await read_release(client))
    session.adapters = sorted(set.intersection(*adapters))
    session.result.model = session.reference.model
    if session.is_pair:
        await ask_alike(*session.clients)
    try:
        await _choose_prompts(session)
    except RequestError as error:
        raise ServerCheckError(
            f"{session.client.url}: does not answer a request: {error}"
        ) from error


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


async def _drop_refused(session: Session, client: CheckClient) -> None:
    """Do without the parameters that a server refuses."""
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
        if name in taken and (why := await _refusal(client, probe)):
            session.result.refused[name] = why
            taken.pop(name)
    client.extras = taken
    if why := await _refusal(client, replace(probe, salt=session.new_salt())):
        session.result.refused[SALT] = why
        client.takes_salt = False


async def _refusal(client: CheckClient, request: Request) -> str:
    """Say why a server refuses a request; empty if it takes it."""
    try:
        await client.ask(request)
    except RequestError as error:
        if not error.is_refusal:
            raise ServerCheckError(f"{client.url}: {error}") from error
        client.discount(error)
        return str(error)
    return ""


async def _choose_prompts(session: Session) -> None:
    """Take token ids for prompts where each server names the same for a text, and takes them."""
    text = source_text(session.rng)
    if session.room:
        text = text[: session.room // 2]
    replies = [await client.ask_whole(Request(text, 1)) for client in session.clients]
    words = len(text.split(" "))
    usage, named = replies[0].usage, replies[0].prompt_ids
    session.prompts = Prompts(session.rng, (), usage.prompt / words if usage else 1.5)
    if len(named) > 1 and all(reply.prompt_ids == named for reply in replies):
        ids = Prompts(session.rng, named[1:], 1.0)  # without a mark of the beginning
        probe = Request(ids.make(8), 1)
        if not any([await _refusal(client, probe) for client in session.clients]):
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
        size, answer = session.fitting(lengths[at % len(lengths)]), _ANSWERS[at % len(_ANSWERS)]
        known = await session.try_to_learn(session.make_request(size, answer))
        tries += 1
        if known is not None:
            session.known.append(known)
        if known is not None and size in _SHORT:
            session.short.append(known)
        if tries >= _TRIES or (time.monotonic() > until and len(session.known) >= _FEWEST):
            break
    if len(session.known) < _FEWEST:
        errors = session.reference.errors.items()
        failed = ", ".join(f"{count} x {kind}" for kind, count in errors)
        raise ServerCheckError(
            f"{session.reference.url}: expected {_FEWEST} answers of {tries} requests, "
            f"found {len(session.known)} ({failed})"
        )


async def _learn_rule(session: Session, *, strict: bool) -> None:
    """Ask one request ten times alone, then with others, and see how far logarithms move.

    Between two servers all requests are asked once, as these move every one: other kernels, another
    precision.
    """
    long_enough = [one for one in session.known if len(one.answer.tokens) > 1] or session.known
    one = session.rng.choice(long_enough)
    first = list(session.known) if session.is_pair else [one] * _AGAIN
    alone = [
        await session.answer(replace(known.request, salt=session.new_salt())) for known in first
    ]
    pairs = [
        (known.answer, answer)
        for known, answer in zip(first, alone, strict=True)
        if answer is not None
    ]
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
    if session.is_pair:
        await session.note("tokens", first, alone, session.alone)


def _is_wanted(settings: Settings, name: str) -> bool:
    return not settings.only or name in settings.only


async def _ask_rounds(session: Session, settings: Settings, report: Callable[[str], None]) -> None:
    rounds = [(name, ask) for name, ask in _ROUNDS if _is_wanted(settings, name)]
    if session.is_pair and _is_wanted(settings, "speed"):
        timed = ("speed", ask_timed)
        rounds = [step for one in rounds for step in (timed, one)] or [timed]
    asked = dict.fromkeys((name for name, _ in rounds), 0)
    for _ in range(settings.rounds):
        for name, ask in rounds:
            if session.is_over:
                return
            report(name)
            await ask(session, asked[name])
            asked[name] += 1
