"""Mutants of a new request's hit in the prefix cache, on the scheduler's side."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def block_before(original: Any, tally: Tally) -> Any:
    """Take the state that a hit goes on from out of the block before.

    Of the cached ones before, the last; without any, the null block, which holds no state.
    """
    find = original.__func__

    def find_longest_cache_hit(cls: type[Any], /, **named: Any) -> Any:
        blocks, length = find(cls, **named)
        size, pool = named["kv_cache_spec"].block_size, named["block_pool"]
        for index, found in enumerate(blocks):
            if found:
                shorter = {**named, "max_length": (len(found) - 1) * size}
                earlier = find(cls, **shorter)[0][index]
                tally.count(changed=True)
                found[-1] = earlier[-1] if earlier else pool.null_block
        return blocks, length

    return classmethod(find_longest_cache_hit)


def of_another(original: Any, tally: Tally) -> Any:
    """Let a hit go on from the state that the hit before it has found."""
    find = original.__func__
    last: dict[int, Any] = {}

    def find_longest_cache_hit(cls: type[Any], /, **named: Any) -> Any:
        blocks, length = find(cls, **named)
        for group, found in zip(named["kv_cache_group_ids"], blocks, strict=True):
            if found:
                right, wrong = found[-1], last.get(group, found[-1])
                last[group] = right
                usable = wrong.block_hash is not None and wrong is not right
                tally.count(changed=usable)
                found[-1] = wrong if usable else right
        return blocks, length

    return classmethod(find_longest_cache_hit)


def unsplit(original: Callable[..., int], tally: Tally) -> Callable[..., int]:
    """Let chunks of a prompt end wherever the budget ends, not where a state is to be cached."""

    def split(scheduler: Any, request: Any, tokens: int, *args: Any, **named: Any) -> int:
        right = original(scheduler, request, tokens, *args, **named)
        tally.count(changed=right != tokens)
        return tokens

    return split


def not_copied(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave the running state in the old block when a request goes on in a new one.

    With speculation one kernel copies the states of all rows, without it one call copies what was
    gathered in a buffer.
    """
    del original

    def copy(*args: Any, num_reqs: int | None = None, **named: Any) -> None:
        if num_reqs is None:
            has_work = args[0].offset > 0
        else:
            has_work = bool((named["src_col_gpu"][:num_reqs] >= 0).any())
        if has_work:
            tally.count(changed=True)

    return copy
