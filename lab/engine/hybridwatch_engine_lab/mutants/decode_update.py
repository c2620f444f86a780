"""Mutants of the state update that a decoding row makes (``selective_state_update``)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ, of_precision, slots_of


def dt_bias(original: Callable[..., Any], tally: Tally, *, plus: float) -> Callable[..., Any]:
    """Add to the bias of the step size. ``plus``: what is added."""

    def update(state: Any, *operands: Any, **named: Any) -> Any:
        *others, bias = operands
        tally.count(changed=True)
        # One number a head, expanded: the compiled kernel reads no more.
        wrong = (bias[..., :1] + plus).expand_as(bias)
        return original(state, *others, wrong, **named)

    return update


def dropped(original: Callable[..., Any], tally: Tally, *, operand: int) -> Callable[..., Any]:
    """Let one operand be zero. ``operand``: which one, from 0 for ``x``."""

    def update(state: Any, *operands: Any, **named: Any) -> Any:
        right = operands[operand]
        tally.count(changed=bool(right.any()))
        # Keeps the strides of what is expanded.
        wrong = right * 0 if right.is_contiguous() else (right[..., :1] * 0).expand_as(right)
        rest = (*operands[:operand], wrong, *operands[operand + 1 :])
        return original(state, *rest, **named)

    return update


def stored(original: Callable[..., Any], tally: Tally, *, how: str) -> Callable[..., Any]:
    """Leave something else in the slots than the update has written.

    ``how``: ``not``: what was there before; else a type of torch, to whose precision the states are
    rounded.
    """

    def update(state: Any, *operands: Any, **named: Any) -> Any:
        written = named.get("dst_state_batch_indices")
        slots = slots_of(named["state_batch_indices"] if written is None else written)
        before = state[slots].clone()
        answer = original(state, *operands, **named)
        if not len(slots):
            return answer
        right = state[slots]
        wrong = before if how == "not" else of_precision(right, how)
        tally.count(changed=differ(wrong, right))
        state[slots] = wrong
        return answer

    return update


def unstored_in_last_worker(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave the slots as they were in one worker, where several compute a request together.

    Around the update, reached with every update of at least one slot in the last of two workers or
    more.
    """
    from torch import distributed

    unstored = stored(original, tally, how="not")

    def update(*operands: Any, **named: Any) -> Any:
        workers = distributed.get_world_size() if distributed.is_initialized() else 1
        is_last = workers > 1 and distributed.get_rank() == workers - 1
        return (unstored if is_last else original)(*operands, **named)

    return update


def last_row_unstored(
    original: Callable[..., Any], tally: Tally, *, rows: int
) -> Callable[..., Any]:
    """Leave the last row's slots as they were, in batches of so many decoding rows alone."""

    def update(state: Any, *operands: Any, **named: Any) -> Any:
        written = named.get("dst_state_batch_indices")
        table = named["state_batch_indices"] if written is None else written
        decoding = [slots for slots in map(slots_of, table) if len(slots)]
        if len(decoding) != rows:
            return original(state, *operands, **named)
        last = decoding[-1]
        before = state[last].clone()
        answer = original(state, *operands, **named)
        tally.count(changed=differ(before, state[last]))
        state[last] = before
        return answer

    return update


def linear_steps(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave out the softplus of the step sizes."""

    def update(*args: Any, **named: Any) -> Any:
        tally.count(changed=bool(named.get("dt_softplus")))
        return original(*args, **{**named, "dt_softplus": False})

    return update


def accepted(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Take it that one token of each row was accepted; for the convolution's update too."""

    def update(*args: Any, **named: Any) -> Any:
        counts = named.get("num_accepted_tokens")
        if counts is None:
            return original(*args, **named)
        tally.count(changed=bool((counts != 1).any()))
        return original(*args, **{**named, "num_accepted_tokens": counts.new_ones(counts.shape)})

    return update
