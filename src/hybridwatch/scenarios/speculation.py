"""The table of a scenario that makes an engine speculate."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hybridwatch.scenarios.part import Contradiction, Part, refuse
from hybridwatch.scenarios.validation_text import quoted


class Speculation(Part):
    """Which tokens are proposed to the engine ahead of time (vLLM's ``speculative_config``).

    Attributes:
        method: ``ngram``: what followed the last tokens earlier in the text. ``mtp``: layers that
            the target itself has for it. ``eagle``: a head on the target's hidden states.
            ``draft_model``: a model of its own.
        drafts: Tokens proposed in each step (``num_speculative_tokens``).
        model: Folder of ``models/`` that holds the head or the model; none for ``ngram`` and
            ``mtp``.
        lookup_min: Fewest last tokens that ``ngram`` looks for (``prompt_lookup_min``).
        lookup_max: Most of them (``prompt_lookup_max``).
    """

    method: Literal["ngram", "mtp", "eagle", "draft_model"]
    drafts: Annotated[int, Field(ge=1, le=16)]
    model: Annotated[str, Field(pattern=r"\S")] | None = None
    lookup_min: Annotated[int, Field(ge=1, le=64)] | None = None
    lookup_max: Annotated[int, Field(ge=1, le=64)] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse(*_contradictions_of_drafts(self))
        return self


def _contradictions_of_drafts(speculation: Speculation) -> Iterator[Contradiction]:
    method = quoted(speculation.method)
    alone = speculation.method in {"ngram", "mtp"}
    if alone and speculation.model is not None:
        found = f"found {quoted(speculation.model)}"
        yield "model", f"expected none with method {method}, {found}"
    if not alone and speculation.model is None:
        yield "model", f"missing; method {method} needs it"
    if speculation.method == "ngram":
        low, high = speculation.lookup_min, speculation.lookup_max
        if low is not None and high is not None and low > high:
            yield "lookup_min", f"expected at most lookup_max ({high}), found {low}"
        return
    for key in ("lookup_min", "lookup_max"):
        value = getattr(speculation, key)
        if value is not None:
            yield key, f'expected only with method "ngram", found {value}'
