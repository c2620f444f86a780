"""Relations of an answer to the form of its request: stops, counts, lists of prompts, streams."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from hybridwatch.server_check.answer import Answer, Reply, Usage
from hybridwatch.server_check.client import Request, RequestError
from hybridwatch.server_check.comparison import Likeness
from hybridwatch.server_check.differences import show
from hybridwatch.server_check.result import Break, Tally
from hybridwatch.server_check.session import Known, Session

_ROUNDING: Final = 1e-4
"""Nats, of logarithms in one answer, and how far probabilities may exceed 1."""
_UNFINISHED: Final = "\N{REPLACEMENT CHARACTER}"
"""What stands for a character whose bytes have not all come."""
_LONGEST_STOP: Final = 4


async def ask_stop(session: Session, number: int) -> None:
    """Stop answers at a text that is known to come in them, whole and as a stream."""
    tally = session.tally("stop")
    for known in session.draw(3):
        text = known.answer.text or ""
        stop = choose_stop(session, text)
        if stop is None:
            continue
        request = replace(known.request, salt=session.new_salt(), streamed=number % 2 == 1)
        request = request.with_more(stop=[stop])
        try:
            found = await session.client.ask(request)
        except RequestError as error:
            note_refusal(session, tally, error)
            continue
        expected = text[: text.index(stop)]
        if is_another_answer(session, "stop", known.answer, found):
            continue
        if found.text != expected or found.finish != "stop":
            said = (
                f"stop {stop!r}: expected the answer cut before it and finish_reason 'stop', "
                f"found finish_reason {found.finish!r}"
            )
            commands = session.client.curl(known.request), session.client.curl(request)
            tally.add_break(Break(said, expected, found.text, commands))
    if not tally.checked and not tally.reason:
        tally.reason = "no answer had a text to stop at"


def note_refusal(session: Session, tally: Tally, error: RequestError) -> None:
    """Note why a relation is not checked, or not whole: the server does not take a request."""
    if error.is_refusal:
        session.client.discount(error)
        tally.reason = f"refused: {error}"


def choose_stop(session: Session, text: str) -> str | None:
    """Choose a part of a text that comes behind its beginning; ``None`` if there is none."""
    clean = text.partition(_UNFINISHED)[0]
    if len(clean) < 2 * _LONGEST_STOP:
        return None
    begin = session.rng.randrange(len(clean) // 4, len(clean) * 3 // 4)
    stop = clean[begin : begin + session.rng.randrange(1, _LONGEST_STOP + 1)]
    return stop if stop.strip() else None


def is_another_answer(session: Session, relation: str, known: Answer, found: Answer) -> bool:
    """Whether an answer's tokens are others, so that its text says nothing; counts it."""
    tally = session.tally(relation)
    if not known.tokens:
        tally.reason = "the server names no tokens, so another text may be rounding"
        return True
    tally.checked += 1
    shorter = min(len(known.tokens), len(found.tokens))
    if not shorter:
        return False
    compared = session.rule.compare(known.first(shorter), found.first(shorter))
    tally.within_rounding += compared.likeness is Likeness.ROUNDING
    return compared.likeness is not Likeness.SAME


async def ask_stream(session: Session, _number: int) -> None:
    """Ask for the stream of an answer that is known whole."""
    tally = session.tally("stream")
    for known in session.draw(3):
        request = replace(known.request, salt=session.new_salt(), streamed=True)
        try:
            reply = await session.client.ask_whole(request)
        except RequestError as error:
            note_refusal(session, tally, error)
            continue
        found = reply.answers[0]
        is_other = is_another_answer(session, "stream", known.answer, found)
        said = ""
        if not reply.is_whole:
            said = "the stream ended without a finish_reason"
        elif not is_other and found.text != known.answer.text:
            said = "the chunks, joined, are another text than the whole answer"
        elif not is_other and found.finish != known.answer.finish:
            said = f"finish_reason {found.finish!r} instead of {known.answer.finish!r}"
        if said:
            commands = session.client.curl(known.request), session.client.curl(request)
            tally.add_break(Break(said, show(known.answer), show(found), commands))


async def ask_count(session: Session, number: int) -> None:
    """Count tokens and hold logarithms against each other; ask two prompts in one request."""
    for known in session.draw(2):
        request = replace(known.request, salt=session.new_salt(), streamed=number % 2 == 1)
        try:
            reply = await session.client.ask_whole(request)
        except RequestError:
            continue
        session.tally("count").checked += 1
        for said, expected, found in miscounts(request, reply):
            commands = (session.client.curl(request),)
            session.tally("count").add_break(Break(said, expected, found, commands))
    if session.at_once > 1:
        await _ask_list(session)
        await _ask_n(session)


def miscounts(request: Request, reply: Reply) -> Iterator[tuple[str, Any, Any]]:
    """Find what does not add up in a reply: a sentence, what was expected, what was found."""
    answer, usage = reply.answers[0], reply.usage
    if answer.is_nan:
        yield "the logarithms of an answer are no numbers", "numbers", "no numbers"
    if usage is not None:
        yield from _miscounted(request, answer, usage)
    if answer.tokens and len(answer.tokens) > request.max_tokens:
        yield "more tokens than max_tokens", request.max_tokens, len(answer.tokens)
    if answer.logprobs and len(answer.logprobs) != len(answer.tokens):
        yield "not one logarithm a token", len(answer.tokens), len(answer.logprobs)
    for at, (chosen, top) in enumerate(zip(answer.logprobs, answer.top, strict=False)):
        wrong = _wrong_logarithms(chosen, list(top.values()))
        if wrong:
            yield f"token {at + 1}: {wrong}", "greedy logarithms", {"chosen": chosen, "top": top}
            return


def _miscounted(request: Request, answer: Answer, usage: Usage) -> Iterator[tuple[str, int, int]]:
    if answer.tokens and usage.completion != len(answer.tokens):
        yield "usage.completion_tokens is wrong", len(answer.tokens), usage.completion
    if isinstance(request.prompt, tuple) and usage.prompt != len(request.prompt):
        yield "usage.prompt_tokens is wrong", len(request.prompt), usage.prompt
    if usage.total != usage.prompt + usage.completion:
        yield "usage.total_tokens is no sum", usage.prompt + usage.completion, usage.total


def _wrong_logarithms(chosen: float, top: Sequence[float]) -> str:
    if not top:
        return ""
    if max(chosen, *top) > _ROUNDING:
        return "a probability above 1"
    if chosen < max(top) - _ROUNDING:
        return f"chosen {max(top) - chosen:.3g} nats behind the best"
    return ""


async def _ask_list(session: Session) -> None:
    """Ask two prompts in one request: each has its own answer, in their order."""
    pair = session.draw(2)
    if len(pair) < 2:
        return
    most = min(one.request.max_tokens for one in pair)
    prompts = [one.request.prompt for one in pair]
    first = replace(pair[0].request, salt=session.new_salt(), max_tokens=most)
    await _hold_choices(session, first.with_more(prompt=prompts), pair)


async def _ask_n(session: Session) -> None:
    """Ask for two greedy answers, which must be equal; many servers refuse it."""
    known = session.draw(1)
    if known:
        request = replace(known[0].request, salt=session.new_salt())
        await _hold_choices(session, request.with_more(n=2), known * 2)


async def _hold_choices(session: Session, request: Request, pair: Sequence[Known]) -> None:
    tally = session.tally("count")
    try:
        reply = await session.client.ask_whole(request)
    except RequestError as error:
        note_refusal(session, tally, error)
        return
    if len(reply.answers) == 1:
        tally.reason = "not all of it: the server gives one answer to each request"
        return
    tally.checked += 1
    commands = (session.client.curl(request),)
    if len(reply.answers) != len(pair):
        said = "a request for two answers had another number of them"
        tally.add_break(Break(said, len(pair), len(reply.answers), commands))
        return
    for known, found in zip(pair, reply.answers, strict=True):
        expected = known.answer.first(request.max_tokens)
        compared = session.rule.compare(expected, replace(found, text=None))
        tally.within_rounding += compared.likeness is Likeness.ROUNDING
        if compared.likeness is Likeness.DIFFERENT:
            said = "an answer of two in one request is another one than alone"
            tally.add_break(Break(said, show(expected), show(found), commands))
            return
