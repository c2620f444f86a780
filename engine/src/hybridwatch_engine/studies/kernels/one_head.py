"""The operands of a layer of Mamba1, as cases have them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from torch import Tensor


@dataclass(frozen=True, slots=True)
class OneHead:
    """What a step of Mamba1 computes with, tokens first.

    Attributes:
        x: Inputs, (tokens, channels).
        dt: Step sizes, likewise.
        a: Rate of decay, (channels, entries).
        b: (tokens, entries).
        c: Like ``b``.
        d: What goes straight to the output, (channels,).
        dt_bias: Added to the step sizes, (channels,).
        z: The output is multiplied by its SiLU, like ``x``.
    """

    x: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor
    dt_bias: Tensor
    z: Tensor | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> Self:
        """Pick them out of the arguments of a case."""
        return cls(**{field.name: call[field.name] for field in fields(cls)})
