"""Mutants of the flags by which layers learn whether a row of a prompt has an earlier state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ


def begun(original: Callable[..., Any], tally: Tally, *, says: bool) -> Callable[..., Any]:
    """Say of every prompt in a step that there is a state to begin with, or that there is none."""

    def compute(builder: Any, *args: Any, **kwargs: Any) -> Any:
        metadata = original(builder, *args, **kwargs)
        flags = metadata.has_initial_states_p
        if flags is None:
            return metadata
        false_ones = flags.new_full(flags.shape, says)
        tally.count(changed=differ(flags, false_ones))
        return replace(metadata, has_initial_states_p=false_ones)

    return compute


def tails_decode(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Call the last few tokens of a prompt a decode: no more than a token said and its drafts."""

    def compute(builder: Any, common: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("num_accepted_tokens") is not None:
            rows, computing = common.query_start_loc_cpu.diff(), common.is_prefilling
            short = (rows > 1) & (rows <= 1 + builder.num_spec_tokens)
            tails = computing & short & (common.seq_lens_cpu_upper_bound > rows)
            if bool(tails.any()):
                tally.count(changed=True)
                common = common.replace(is_prefilling=computing & ~tails)
        return original(builder, common, *args, **kwargs)

    return compute


def slots(original: Callable[..., Any], tally: Tally, *, how: str) -> Callable[..., Any]:
    """Give rows that decode the slots of others.

    ``how``: ``shared``: the second row has the first one's; ``rotated``: each has its neighbour's.
    """

    def update(builder: Any, metadata: Any) -> Any:
        indices = metadata.state_indices_tensor_d
        rows = metadata.num_decodes
        if indices is None or rows < 2:
            return original(builder, metadata)
        wrong = indices.clone()
        if how == "shared":
            wrong[1] = indices[0]
        else:
            wrong[:rows] = indices[:rows].roll(1, dims=0)
        tally.count(changed=differ(wrong, indices))
        return original(builder, replace(metadata, state_indices_tensor_d=wrong))

    return update


def padded_rows(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Give the rows that pad a graph the first request's slot in place of the null block.

    The builder counts those rows among the ones that decode; a row of padding is one whose sequence
    has no token.
    """

    def update(builder: Any, metadata: Any) -> Any:
        padded = original(builder, metadata)
        indices = padded.state_indices_tensor_d
        if indices is None or metadata.num_prefills:
            return padded
        empty = metadata.seq_lens[: len(indices)] == 0
        if bool(empty[0]) or not bool(empty.any()):
            return padded
        tally.count(changed=differ(indices[empty], indices[0]))
        indices[empty] = indices[0]
        return padded

    return update


def accepted(original: Callable[..., Any], tally: Tally, *, plus: int) -> Callable[..., Any]:
    """Miscount the accepted tokens, which choose the state that a row goes on from.

    ``plus``: added to each; no count falls below 1 or rises above what a step can have.
    """

    def compute(builder: Any, *args: Any, **kwargs: Any) -> Any:
        counts = kwargs.get("num_accepted_tokens")
        if counts is None:
            return original(builder, *args, **kwargs)
        wrong = (counts + plus).clamp(1, 1 + builder.num_spec_tokens)
        tally.count(changed=differ(wrong, counts))
        return original(builder, *args, **{**kwargs, "num_accepted_tokens": wrong})

    return compute
