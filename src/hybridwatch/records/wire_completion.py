"""The file form of a contract trial's answers: lists of numbers, since a record has thousands."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hybridwatch.records.bounds import MOST_VALUES, Whole
from hybridwatch.records.completion import CLOSE, CloseCall, Completion

_Many = Field(max_length=MOST_VALUES)
_Logarithm = Annotated[float, Field(ge=-1e30, le=0)]
_Gap = Annotated[float, Field(ge=0, le=CLOSE)]


class WireCompletion(BaseModel):
    """One answer; fields as ``record.completion.Completion``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    prompt: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    tokens: Annotated[tuple[Whole, ...], _Many]
    logprobs: Annotated[tuple[_Logarithm, ...], _Many] = ()
    close_calls: Annotated[tuple[tuple[Whole, Whole, _Gap], ...], _Many] = ()
    is_wrong: bool | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.logprobs and len(self.logprobs) != len(self.tokens):
            raise ValueError(
                f"expected as many logprobs as tokens, {len(self.tokens)}, "
                f"found {len(self.logprobs)}"
            )
        return self

    def to_completion(self) -> Completion:
        """Give the memory form."""
        calls = tuple(CloseCall(*call) for call in self.close_calls)
        return Completion(self.prompt, self.tokens, self.logprobs, calls, self.is_wrong)
