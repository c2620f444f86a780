"""The relation of a request to what others ask of their answers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hybridwatch.records.trial_parts import NEAR_TIE_FLOAT32
from hybridwatch.server_check.client import RequestError
from hybridwatch.server_check.relations.protocol import note_refusal
from hybridwatch.server_check.session import Known, Session

_PROMPT: Final = 24
_ANSWER: Final = 16
_LEAST: Final = 9
_CERTAIN: Final = 100.0
"""A bias that no other token comes near, so rounding cannot change what is chosen."""
_COMPANIONS: Final = 3


async def ask_choices(session: Session, number: int) -> None:
    """Ask requests that do not want the likeliest tokens, beside each other and beside others."""
    tally = session.tally("choices")
    if session.at_once == 1 or not session.prompts.are_ids:
        tally.reason = "one request at a time, or no token ids"
        return
    items = [known for more in _wishes(session) if (known := await _learn(session, more))]
    if not items or session.is_over:
        return
    items = session.rng.sample([*items, *session.draw(_COMPANIONS)], len(items) + _COMPANIONS)
    scene = session.staggered if number % 2 else session.together
    await session.hold("choices", items, scene)
    if not session.is_over:
        await session.hold("choices", items, session.alone)  # in rows that others had before


def _wishes(session: Session) -> Iterator[Mapping[str, Any]]:
    """Give what requests ask besides; only where rounding is small what it could turn."""
    tokens = session.prompts.make(8)
    forced, stop = int(tokens[0]), int(tokens[-1])
    yield {"logit_bias": {str(forced): _CERTAIN}}
    bias = {str(stop): _CERTAIN}
    yield {"logit_bias": bias, "stop_token_ids": [stop], "min_tokens": _LEAST}
    yield {"temperature": 1.0, "top_k": 1}
    if session.rule.margin <= NEAR_TIE_FLOAT32:
        yield {"frequency_penalty": 2.0}
        yield {"presence_penalty": -2.0}


async def _learn(session: Session, more: Mapping[str, Any]) -> Known | None:
    """Ask a request alone; one that may draw from one token alone is answered as a greedy one."""
    request = session.make_request(_PROMPT, _ANSWER)
    try:
        known = await session.learn(request.with_more(**more))
        if "top_k" in more:
            greedy = await session.learn(request)
            return replace(known, answer=greedy.answer)
    except RequestError as error:
        note_refusal(session, session.tally("choices"), error)
        return None
    return known
