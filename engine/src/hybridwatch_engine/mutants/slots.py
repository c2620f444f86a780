"""Which rows of a state cache a call names."""

from typing import Any


def slots_of(indices: Any) -> Any:
    """The slots among indices of any shape, each once, without the null block and padding."""
    slots = indices.flatten().long().unique()
    return slots[slots > 0]


def of_precision(values: Any, dtype: str) -> Any:
    """Round values to the precision of a type of torch, and keep their own type."""
    import torch

    return values.to(getattr(torch, dtype)).to(values.dtype)


def differ(one: Any, other: Any) -> bool:
    """Whether two tensors of one shape hold different values anywhere."""
    return bool((one != other).any())


def moved_in_time(states: Any, slots: Any, by: int) -> bool:
    """Move what some slots of a convolution's inputs hold along their last axis, which is time.

    Returns:
        Whether anything is other than it was.
    """
    before = states[slots]
    states[slots] = before.roll(by, dims=-1)
    return differ(states[slots], before)
