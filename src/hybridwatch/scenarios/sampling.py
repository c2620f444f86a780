"""What a request asks of its answer besides length and temperature, in vLLM's names."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from hybridwatch.scenarios.validation import Contradiction, Part

_TokenId = Annotated[int, Field(ge=0, le=10_000_000)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_ONE_TOKEN_P: Final = 1e-6
"""No more than the likeliest token's probability in any vocabulary of a million tokens."""


def _is_token_id(text: str) -> str:
    if not (text.isascii() and text.isdecimal()):
        raise PydanticCustomError("token", "not a token id")
    return text


class StructuredOutputs(Part):
    """The grammar of an answer, by exactly one of three names that vLLM has for it."""

    regex: Annotated[str, Field(min_length=1)] | None = None
    schema_of_json: dict[str, Any] | None = Field(default=None, alias="json")
    choice: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=(), strict=False)

    def _contradictions(self) -> Iterator[Contradiction]:
        found = list(self.as_written())
        if len(found) != 1:
            yield "", f"expected one of regex, json and choice, found {', '.join(found) or 'none'}"

    def as_written(self) -> dict[str, Any]:
        """Give the one key that is stated, as a request says it."""
        return self.model_dump(exclude_defaults=True, by_alias=True)


class SamplingParams(Part):
    """What vLLM's class of this name has, as far as it ends an answer or changes its choices.

    vLLM adds the bias, then applies the penalties, then draws (``v1/worker/gpu/sample/sampler.py``,
    ``v1/sample/sampler.py``).

    Attributes:
        min_tokens: As many tokens come before anything but the length ends it.
        top_k: Draw from so many tokens, the likeliest; 0 for all.
        top_p: Draw from the likeliest tokens that together have this probability.
        min_p: Draw from tokens that have this share of the likeliest one's probability.
        repetition_penalty: Divides positive logits of tokens that prompt or answer have, and
            multiplies negative ones.
        presence_penalty: Taken off the logit of each token that the answer has.
        frequency_penalty: Taken off it each time that the answer has it.
        logit_bias: Added to the logits of tokens; the keys are token ids.
        prompt_logprobs: The prompt's tokens, from the second on, are compared with those of the
            answer, each with its logarithm; so many alternatives are requested besides.
    """

    stop: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=(), strict=False)
    stop_token_ids: tuple[_TokenId, ...] = Field(default=(), strict=False)
    ignore_eos: bool = True
    min_tokens: Annotated[int, Field(ge=0, le=1_048_576)] = 0
    top_k: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    top_p: Annotated[float, Field(ge=1e-9, le=1)] = 1.0
    min_p: Annotated[float, Field(ge=0, le=1)] = 0.0
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    presence_penalty: _Penalty = 0.0
    frequency_penalty: _Penalty = 0.0
    logit_bias: dict[
        Annotated[str, AfterValidator(_is_token_id), Field(description="a token id")],
        Annotated[float, Field(ge=-100, le=100)],
    ] = Field(default_factory=dict)
    prompt_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    structured_outputs: StructuredOutputs | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        if self.min_tokens and not self.can_end_early:
            wanted = "expected only with stop, stop_token_ids or ignore_eos = false"
            yield "min_tokens", f"{wanted}, found {self.min_tokens}"
        elif self.structured_outputs is not None:
            yield from self._contradictions_of_grammar()

    def _contradictions_of_grammar(self) -> Iterator[Contradiction]:
        """Only the end-of-text token may end the answer, and the grammar alone says when."""
        if self.ignore_eos:
            yield "ignore_eos", "expected false with structured_outputs, found true"
        for name in ("stop", "stop_token_ids", "min_tokens"):
            if value := getattr(self, name):
                found = list(value) if isinstance(value, tuple) else value
                yield name, f"expected none with structured_outputs, found {found}"

    @property
    def can_end_early(self) -> bool:
        """Whether something but its length can end an answer."""
        return bool(self.stop or self.stop_token_ids) or not self.ignore_eos

    @property
    def leaves_one_token(self) -> bool:
        """Whether only the likeliest token can be drawn, at any temperature."""
        return self.top_k == 1 or self.top_p <= _ONE_TOKEN_P or self.min_p == 1

    def as_written(self) -> dict[str, Any]:
        """Give what is other than by default, as a request says it."""
        return self.model_dump(exclude_defaults=True, by_alias=True)


DEFAULT_PARAMS: Final = SamplingParams()


def contradictions_of_params(
    params: tuple[SamplingParams, ...], requests: int, shortest: int, *, draws: bool
) -> Iterator[Contradiction]:
    """Yield each broken rule between a wave, with its ``shortest`` answer, and its params."""
    if len(params) > requests:
        yield "sampling_params", f"expected at most {requests}, one a request, found {len(params)}"
    for at, one in enumerate(params):
        key = f"sampling_params[{at}]"
        if one.min_tokens > shortest:
            most = f"at most output_tokens ({shortest})"
            yield f"{key}.min_tokens", f"expected {most}, found {one.min_tokens}"
        for name in ("top_k", "top_p", "min_p"):
            if not draws and name in one.as_written():
                wanted = "expected only with a temperature above 0"
                yield f"{key}.{name}", f"{wanted}, found {getattr(one, name):g}"
