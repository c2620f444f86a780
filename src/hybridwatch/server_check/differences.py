"""Writes an answer, and how it differs from another, for a reader."""

from typing import Any, Final

from hybridwatch.server_check.answer import Answer
from hybridwatch.server_check.client import Prompt
from hybridwatch.server_check.comparison import Comparison, Rule
from hybridwatch.server_check.prompts import length


def show(answer: Answer) -> dict[str, Any]:
    """Write an answer for ``--json``."""
    if answer.is_nan:
        return {"text": answer.text, "logprobs": "no numbers"}
    return {
        "text": answer.text,
        "tokens": list(answer.tokens),
        "logprobs": [round(one, 5) for one in answer.logprobs],
    }


_SITUATIONS: Final = {
    "tokens": "alone",
    "company": "with {others}",
    "cached": "once its beginning was in the cache",
    "short": "with {others}",
    "parameters": "with its parameters and {others}",
    "parts": "when its prompt held the beginning of that answer",
    "long": "with {others}",
    "abort": "while clients went away",
    "idle": "after a pause or many requests",
    "drift": "later",
}


def say_difference(
    relation: str, rule: Rule, prompt: Prompt, answers: tuple[Answer, Answer], others: int
) -> str:
    """Say in one sentence how an answer to a prompt differs from the known one."""
    compared = rule.compare(*answers)
    company = f"{others} other request{'s' * (others != 1)}" if others else "nothing else"
    when = _SITUATIONS.get(relation, "again").format(others=company)
    return f"a prompt of {_size(prompt)}, {when}: {_what(compared, rule, *answers)}"


def _size(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return f"{length(prompt)} words"
    return f"{len(prompt)} token{'s' * (len(prompt) != 1)}"


def _what(compared: Comparison, rule: Rule, expected: Answer, found: Answer) -> str:
    if found.is_nan or expected.is_nan:
        return "its logarithms are no numbers"
    if compared.position is None:
        if compared.shift > rule.largest_shift or rule.strict:
            return (
                f"the same tokens, but a logarithm moved by {compared.shift:.3g} nats "
                f"(rounding: {rule.largest_shift:.3g})"
            )
        return "the same tokens, but another text"
    behind = "" if compared.gap is None else f", {compared.gap:.3g} nats behind"
    at = compared.position
    return (
        f"token {at + 1} is {_token(found, at)} instead of {_token(expected, at)}{behind} "
        f"(near tie: {rule.margin:.3g})"
    )


def _token(answer: Answer, at: int) -> str:
    return repr(answer.tokens[at]) if at < len(answer.tokens) else "the end"
