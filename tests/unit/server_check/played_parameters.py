"""How the played server heeds the parameters of a request, and how it does so wrongly."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Top = Sequence[tuple[int, float]]
Body = Mapping[str, Any]
UNLIKELY = -20.0
"""Nats of a token that is not among the likeliest."""
PARAMETERS = {
    "stop_token_ids",
    "min_tokens",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "echo",
    "response_format",
}
STOP_OF_ANOTHER = "stop of another"
OF_OTHERS = {STOP_OF_ANOTHER, "penalties of another", "schema of another"}
"""Faults that need others in flight."""


def heeded(body: Body, others: Sequence[Body], before: Body, fault: str) -> dict[str, Any]:
    """The parameters by which an answer is made: with a fault, some of another request.

    ``others`` are in flight, and ``before`` came last.
    """
    found = {name: body[name] for name in PARAMETERS & set(body)}
    if fault == STOP_OF_ANOTHER:
        ends = [end for one in (found, *others) for end in one.get("stop_token_ids", ())]
        found["stop_token_ids"] = ends
    if fault == "bias stays" and "logit_bias" in before:
        found.setdefault("logit_bias", before["logit_bias"])
    if fault == "least is one short" and "min_tokens" in found:
        found["min_tokens"] -= 1
    if fault == "penalties of another" and others:
        found = {name: value for name, value in found.items() if "penalty" not in name}
    if fault == "schema of another" and others:
        found.pop("response_format", None)
    return found


def chosen(parameters: Body, top: Top, said: Sequence[int]) -> int:
    """The next token."""
    values = dict(top)
    for token in set(said) & set(values):
        values[token] -= parameters.get("presence_penalty", 0)
        values[token] -= parameters.get("frequency_penalty", 0) * said.count(token)
    for token, bias in parameters.get("logit_bias", {}).items():
        values[int(token)] = values.get(int(token), UNLIKELY) + bias
    if len(said) < parameters.get("min_tokens", 0):
        values = {
            token: value
            for token, value in values.items()
            if token not in parameters.get("stop_token_ids", ())
        }
    return max(values, key=lambda token: values[token])


def is_end(parameters: Body, said: Sequence[int]) -> bool:
    """Whether the last token ends the answer."""
    return said[-1] in parameters.get("stop_token_ids", ())


def as_wanted(parameters: Body, text: str, finish: str) -> tuple[str, str]:
    """The text and the reason of its end: one of the texts of a schema."""
    wanted = parameters.get("response_format")
    if wanted is None:
        return text, finish
    return json.dumps(wanted["json_schema"]["schema"]["enum"][0]), "stop"
