"""A case, one call of a kernel as vLLM makes it, and random shapes, tensors and caches for it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
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
        tokens: The tokens of rows, as a mask over the outputs; others are not compared.
        interpretable: Whether the interpreted Triton kernel serves this call.
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

        ``precise``: whether it gets states and outputs in 64 bits.

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


T = TypeVar("T")

NULL_BLOCK = 0


class Draw:
    """A seeded source of everything a case is made of."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._random = random.Random(seed)  # noqa: S311 - cases, not secrets
        self._torch = torch.Generator().manual_seed(seed)

    def one(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return self._random.choice(choices)

    def count(self, least: int, most: int) -> int:
        """An integer, both ends included."""
        return self._random.randint(least, most)

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return self._random.random() < probability

    def normal(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Normal values of the case's type or another."""
        return torch.randn(*shape, generator=self._torch).to(dtype or self.dtype)

    def uniform(self, least: float, most: float, *shape: int) -> Tensor:
        """Uniform values, 32 bits."""
        return least + (most - least) * torch.rand(*shape, generator=self._torch)

    def slots(self, count: int, most: int) -> list[int]:
        """Different slots up to ``most``, none of them the null block."""
        return self._random.sample(range(NULL_BLOCK + 1, most + 1), count)

    def state_dtype(self) -> torch.dtype:
        """Type of a cache: that of the inputs or 32 bits."""
        return self.one((self.dtype, torch.float32))

    def cache(
        self, slots: int, *shape: int, dtype: torch.dtype, values: torch.dtype | None = None
    ) -> Tensor:
        """A cache of so many slots besides the null block, with space between them as in pages.

        The null block and the space hold no numbers: who reads them is found out.

        ``values``: type that the values were in before; that of the cache when absent.
        """
        numbers = 1
        for size in shape:
            numbers *= size
        page = numbers + 8 * self.count(0, 3)  # compiled kernels need 16 aligned bytes
        memory = torch.full((slots + 1, page), torch.nan, dtype=dtype)
        memory[1:, :numbers] = self.normal(slots, numbers, dtype=values or dtype)
        strides = [1]
        for size in reversed(shape[1:]):
            strides.insert(0, strides[0] * size)
        return memory.as_strided((slots + 1, *shape), (page, *strides))


def int32(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    """A tensor of the type that vLLM's metadata has."""
    return torch.tensor(values, dtype=torch.int32)
