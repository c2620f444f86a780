"""Relations of an answer to the parameters of its request: each does what it says, to it alone.

What must come is known from the answer without the parameter. A server may ignore a parameter that
it does not know; that is reported, and is no break.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.client import RequestError
from hybridwatch.server_check.comparison import Likeness
from hybridwatch.server_check.prompts import joined
from hybridwatch.server_check.session import Known, Session, as_given

_FEWEST_TOKENS: Final = 4
_EACH: Final = 2
"""Requests with each parameter; with as many others they are below what may be in flight."""
_PLAIN: Final = 3
_MOST_BIASED: Final = 6
_PRESENCE: Final = 1.5
_FREQUENCY: Final = 0.5
_BIAS: Final = 100
"""The most that OpenAI's API allows; no logit is as far behind the best."""
_CHOICES: Final = ("river river river river", "stone stone stone stone", "lamp lamp lamp lamp")
"""They repeat words, so that drafts have something to propose."""


async def ask_parameters(session: Session, number: int) -> None:
    """Ask requests with different parameters at once, next to the same without any."""
    tally = session.tally("parameters")
    plain = [one for one in session.known if len(one.answer.ids) >= _FEWEST_TOKENS]
    if not plain:
        tally.reason = "the server names no token ids"
        return
    items, others = [], []
    for parameter in _PARAMETERS * _EACH:
        without = session.rng.choice(plain)
        if known := await _make(session, parameter, without):
            items.append(known)
            others.append(without)
    if lacking := [name for name, why in session.parameters.items() if why]:
        tally.reason = (
            f"not asked for {', '.join(lacking)}, which the server does not heed as expected"
        )
    if session.at_once == 1:
        await session.hold("parameters", items, session.alone)
    else:
        mixed = session.rng.sample([*items, *others], len(items + others))
        scene = session.staggered if number % 2 else session.together
        await session.hold("parameters", mixed[: session.at_once], scene)
    await session.hold("parameters", others[:_PLAIN], session.alone)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter of a request.

    Attributes:
        make: Makes the request that has it, with what must come; ``None`` where the request without
            it is of no use.
        is_ignored: Whether an answer is that of a server which does not know the parameter, by the
            answer without it.
    """

    name: str
    make: Callable[[Session, Known], Awaitable[Known | None]]
    is_ignored: Callable[[Answer, Answer], bool]


async def _make(session: Session, parameter: _Parameter, plain: Known) -> Known | None:
    """Make a request; the first of its kind shows whether the server heeds the parameter."""
    if session.parameters.get(parameter.name):
        return None
    try:
        known = await parameter.make(session, plain)
        if known is None or parameter.name in session.parameters:
            return known
        found = await session.client.ask(replace(known.request, salt=session.new_salt()))
    except RequestError as error:
        if error.is_refusal:
            session.client.discount(error)
            session.parameters[parameter.name] = str(error)
        return None
    compared = session.rule.compare(known.answer, known.view(found))
    is_ignored = compared.likeness is Likeness.DIFFERENT and parameter.is_ignored(
        plain.answer, found
    )
    session.parameters[parameter.name] = "ignored" * is_ignored
    return None if is_ignored else known


def _certain(*tokens: str) -> Answer:
    """Write an answer from which no rounding parts: every other token is far behind."""
    top = tuple({token: 0.0, "": -float(_BIAS)} for token in tokens)
    return Answer(None, tokens, (), (0.0,) * len(tokens), top)


async def _stop(session: Session, plain: Known) -> Known | None:
    """End the answer at one of its own tokens."""
    ids = plain.answer.ids
    at = ids.index(session.rng.choice(ids[1:]))
    if not at:
        return None
    request = plain.request.with_more(stop_token_ids=[ids[at]])
    return replace(
        plain, request=request, answer=plain.answer.first(at), view=partial(_without_end, ids[at])
    )


def _without_end(end: int, found: Answer) -> Answer:
    """Drop the token that ended an answer, which some servers give and others do not."""
    return found.first(len(found.ids) - (found.ids[-1:] == (end,)))


async def _bias(session: Session, plain: Known) -> Known | None:
    """Let one token be all that is said."""
    token = _absent(session, plain)
    if token is None:
        return None
    most = min(_MOST_BIASED, plain.request.max_tokens)
    request = replace(plain.request, max_tokens=most).with_more(logit_bias={str(token): _BIAS})
    return replace(plain, request=request, answer=_certain(*[str(token)] * most), view=_by_ids)


def _by_ids(found: Answer) -> Answer:
    return _certain(*map(str, found.ids))


def _absent(session: Session, plain: Known) -> int | None:
    """Draw a token that is not in an answer."""
    drawn = session.prompts.make(2 * len(plain.answer.ids))
    return next(
        (one for one in drawn if isinstance(one, int) and one not in plain.answer.ids), None
    )


_ENDS_BY: Final = ("stop_token_ids", "logit_bias")


async def _least(session: Session, plain: Known) -> Known | None:
    """Ask for a token that ends the answer, and for some tokens before it."""
    token = _absent(session, plain)
    if token is None or any(session.parameters.get(name) != "" for name in _ENDS_BY):
        return None
    least = session.rng.randrange(1, min(_MOST_BIASED, plain.request.max_tokens))
    request = plain.request.with_more(
        min_tokens=least, stop_token_ids=[token], logit_bias={str(token): _BIAS}
    )
    return replace(
        plain, request=request, answer=_certain(*["any"] * least), view=partial(_counted, token)
    )


def _counted(end: int, found: Answer) -> Answer:
    """Keep of an answer only how many tokens stand before its end."""
    return _certain(*["any"] * len(_without_end(end, found).ids))


async def _penalties(session: Session, plain: Known) -> Known | None:
    """Penalise tokens that were said, and choose as the logarithms say that it must be."""
    repeating = [one for one in session.known if len(set(one.answer.ids)) < len(one.answer.ids)]
    plain = session.rng.choice(repeating or [plain])
    request = plain.request.with_more(presence_penalty=_PRESENCE, frequency_penalty=_FREQUENCY)
    known = await session.learn(replace(request, salt=session.new_salt()))
    for view in (_penalised, as_given):
        answer = view(known.answer)
        if _not_greedy(answer, session.rule.margin) is None:
            return replace(known, answer=answer, view=view)
    if "presence_penalty" not in session.parameters:
        session.parameters["presence_penalty"] = "its logarithms are of another kind"
        return None
    return _corrected(known, session.rule.margin)


def _not_greedy(answer: Answer, margin: float) -> int | None:
    """Find the first token that is behind another; ``None`` if none is."""
    pairs = enumerate(zip(answer.logprobs, answer.top, strict=False))
    return next(
        (at for at, (own, top) in pairs if own < max(top.values(), default=own) - margin), None
    )


def _corrected(known: Known, margin: float) -> Known:
    """Put the best token in the place of the first that is not, and end there."""
    answer = _penalised(known.answer)
    at = _not_greedy(answer, margin) or 0
    best = max(answer.top[at], key=lambda token: answer.top[at][token])
    right = replace(
        answer.first(at + 1),
        tokens=(*answer.tokens[:at], best),
        logprobs=(*answer.logprobs[:at], answer.top[at][best]),
    )
    return replace(known, answer=right, view=lambda found: _penalised(found).first(at + 1))


def _penalised(found: Answer) -> Answer:
    """Take the penalties from logarithms that a server gives without them."""

    def penalty(at: int, token: str) -> float:
        said = found.tokens[:at].count(token)
        return _FREQUENCY * said + _PRESENCE * (said > 0)

    rows = range(min(len(found.tokens), len(found.logprobs), len(found.top)))
    return replace(
        found,
        logprobs=tuple(found.logprobs[at] - penalty(at, found.tokens[at]) for at in rows),
        top=tuple(
            {token: value - penalty(at, token) for token, value in found.top[at].items()}
            for at in rows
        ),
    )


async def _echo(_: Session, plain: Known) -> Known | None:
    """Read an answer as a prompt: its tokens have the logarithms with which they were chosen."""
    prompt = plain.request.prompt
    if not (isinstance(prompt, tuple) and plain.answer.logprobs):
        return None
    whole = joined(prompt, plain.answer.ids)
    request = replace(plain.request, prompt=whole, max_tokens=1).with_more(echo=True)
    view = partial(_echoed, len(prompt), len(plain.answer.ids))
    return replace(plain, request=request, answer=replace(plain.answer, text=None), view=view)


def _echoed(begin: int, size: int, found: Answer) -> Answer:
    return found.from_token(begin).first(size)


async def _schema(session: Session, plain: Known) -> Known | None:
    """Ask for one of a few texts, as JSON."""
    schema = {"name": "words", "schema": {"type": "string", "enum": list(_CHOICES)}}
    request = replace(plain.request, max_tokens=session.longest_answer).with_more(
        response_format={"type": "json_schema", "json_schema": schema},
        **({"ignore_eos": False} if "ignore_eos" in session.client.extras else {}),
    )
    return replace(plain, request=request, answer=_certain(_LEGAL), view=_by_schema)


_LEGAL: Final = "one of the texts"


def _by_schema(found: Answer) -> Answer:
    """Say whether an answer is one of the texts, or the beginning of one where it was cut."""
    text = (found.text or "").strip()
    whole = [json.dumps(one) for one in _CHOICES]
    is_cut = found.finish == "length" and any(one.startswith(text) for one in whole)
    return _certain(_LEGAL if is_cut or text in whole else text)


def _is_plain(plain: Answer, found: Answer) -> bool:
    shorter = min(len(plain.tokens), len(found.tokens))
    return shorter > 0 and found.tokens[:shorter] == plain.tokens[:shorter]


_PARAMETERS: Final = (
    _Parameter("stop_token_ids", _stop, lambda plain, found: found.tokens == plain.tokens),
    _Parameter("logit_bias", _bias, _is_plain),
    _Parameter("min_tokens", _least, lambda _, found: len(found.tokens) <= 1),
    _Parameter("presence_penalty", _penalties, lambda *_: False),
    _Parameter("echo", _echo, lambda _, found: len(found.tokens) <= 1),
    _Parameter("response_format", _schema, _is_plain),
)
"""Those that a check sends, in an order in which what one needs comes before it."""
