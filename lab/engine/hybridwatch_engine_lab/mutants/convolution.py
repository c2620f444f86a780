"""Mutants of the causal convolution before a Mamba layer's scan, and of the inputs it keeps."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ, moved_in_time, slots_of


def continued_window(original: Callable[..., Any], tally: Tally, *, by: int) -> Callable[..., Any]:
    """Move the kept inputs in time before a prompt goes on from them.

    ``by``: tokens, later ones first.
    """

    def convolve(*args: Any, **named: Any) -> Any:
        slots = _continued(named)
        if len(slots):
            tally.count(changed=moved_in_time(named["conv_states"], slots, by))
        return original(*args, **named)

    return convolve


def lost_window(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Forget the oldest of the kept inputs when a prompt goes on from them."""

    def convolve(*args: Any, **named: Any) -> Any:
        slots, states = _continued(named), named["conv_states"]
        if len(slots):
            kept = states[slots]
            tally.count(changed=bool(kept[..., 0].any()))
            kept[..., 0] = 0
            states[slots] = kept
        return original(*args, **named)

    return convolve


def unwritten_window(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Keep nothing of a prompt's last inputs: its slots stay as they were."""

    def convolve(*args: Any, **named: Any) -> Any:
        states, slots = named["conv_states"], slots_of(named["cache_indices"])
        before = states[slots].clone()
        answer = original(*args, **named)
        tally.count(changed=differ(states[slots], before))
        states[slots] = before
        return answer

    return convolve


def decoding_window(original: Callable[..., Any], tally: Tally, *, by: int) -> Callable[..., Any]:
    """Move the kept inputs in time before a row that decodes reads them.

    ``by``: tokens, later ones first.
    """

    def convolve(x: Any, states: Any, *args: Any, **named: Any) -> Any:
        slots = slots_of(named["conv_state_indices"])
        if len(slots):
            tally.count(changed=moved_in_time(states, slots, by))
        return original(x, states, *args, **named)

    return convolve


def without_bias(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave out the bias of ``causal_conv1d_update``."""

    def convolve(x: Any, states: Any, weight: Any, bias: Any, *args: Any, **named: Any) -> Any:
        tally.count(changed=bias is not None and bool(bias.any()))
        wrong = None if bias is None else bias * 0
        return original(x, states, weight, wrong, *args, **named)

    return convolve


def _continued(named: dict[str, Any]) -> Any:
    """The slots from which rows go on."""
    rows, column = named["cache_indices"], named.get("initial_state_idx")
    if rows.dim() > 1 and column is not None:
        rows = rows.gather(1, column.long().unsqueeze(1)).squeeze(1)
    elif rows.dim() > 1:
        rows = rows[:, 0]
    flags = named.get("has_initial_state")
    return slots_of(rows[:0] if flags is None else rows[: len(flags)][flags.bool()])
