"""What becomes of a state space layer's output once the states have said theirs."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Ending:
    """The part of the output that no state takes part in.

    Attributes:
        x: Inputs, (tokens, heads, channels).
        skip: What of them goes straight to the output (``D``), (heads,) or (heads, channels).
        gate: The output is multiplied by its SiLU (``z``), like ``x``.
    """

    x: Tensor
    skip: Tensor | None
    gate: Tensor | None

    def apply(self, output: Tensor) -> Tensor:
        """Finish what the states say, (tokens, heads, channels) in 32 bits, in place."""
        if self.skip is not None:
            skip = self.skip if self.skip.dim() > 1 else self.skip.unsqueeze(-1)
            output.addcmul_(self.x.float(), skip.float())
        if self.gate is not None:
            output *= functional.silu(self.gate.float())
        return output
