"""Mutants of the scan over a prompt's tokens (``mamba_chunk_scan_combined_varlen``)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ, of_precision


def initial_states(original: Callable[..., Any], tally: Tally, *, how: str) -> Callable[..., Any]:
    """Begin with other states than those that were kept.

    ``how``: ``none``; ``rotated``: each prompt has its neighbour's; ``halved``.
    """
    wrongs: dict[str, Callable[[Any], Any]] = {
        "none": lambda states: states * 0,
        "rotated": lambda states: states.roll(1, dims=0),
        "halved": lambda states: states * 0.5,
    }

    def scan(*args: Any, **named: Any) -> Any:
        states = named.get("initial_states")
        if states is None:
            return original(*args, **named)
        wrong = wrongs[how](states)
        tally.count(changed=differ(wrong, states))
        return original(*args, **{**named, "initial_states": wrong})

    return scan


def final_states(original: Callable[..., Any], tally: Tally, *, how: str) -> Callable[..., Any]:
    """Hand on other states than those that the scan ended with.

    ``how``: ``rotated``: each prompt has its neighbour's, or, where the states at the ends of
    blocks are handed on, each end has the one before; else a type of torch, to whose precision they
    are rounded.
    """

    def scan(*args: Any, **named: Any) -> Any:
        right = original(*args, **named)
        wrong = right.roll(1, dims=0) if how == "rotated" else of_precision(right, how)
        tally.count(changed=differ(wrong, right))
        return wrong

    return scan
