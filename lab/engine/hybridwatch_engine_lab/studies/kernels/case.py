"""A case: one call of a kernel, as vLLM makes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

Kernels = Mapping[str, Callable[..., Tensor | None]]
"""A function for each kernel. What it returns has tokens or chunks first."""


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One call.

    Attributes:
        kernel: Whose call it is.
        form: What is special about it, for people.
        call: Arguments by vLLM's names.
        dtype: Name of the type of the inputs and outputs.
        states: The arguments that hold states, compared as a whole: what is not stored to must not
            be touched.
        output: The argument that takes the outputs, or ``returned``; empty for none.
        tokens: The tokens of rows, as a mask over the outputs; what is said of others is nobody's.
        interpretable: Whether the Triton kernel, interpreted, does what is asked here.
    """

    kernel: str
    form: str
    call: dict[str, Any]
    dtype: str
    states: tuple[str, ...]
    output: str
    tokens: Tensor
    interpretable: bool = True

    def run(self, kernels: Kernels, *, precise: bool = False) -> dict[str, Tensor]:
        """Call the kernel on a copy of the arguments.

        Args:
            kernels: Where the kernel is.
            precise: Whether it gets states and outputs in 64 bits.

        Returns:
            States and outputs by name, the outputs of tokens of rows only.
        """
        call = {name: _copied(value) for name, value in self.call.items()}
        wide = [name for name in (*self.states, self.output) if precise and name in call]
        call |= {name: call[name].double() for name in wide}
        returned = kernels[self.kernel](**call)
        after = call if returned is None else {**call, "returned": returned}
        outputs = {name: after[name] for name in self.states}
        if self.output:
            outputs[self.output] = outputs.get(self.output, after[self.output])[self.tokens]
        return outputs


def _copied(value: Any) -> Any:
    """A copy of a tensor with the layout it has, memory between its elements included."""
    if not isinstance(value, Tensor):
        return value
    whole = value.new_empty(0).set_(value.untyped_storage()).clone()
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())
