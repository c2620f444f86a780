"""Mutants of the masks that grammars put on the logits of requests that speculate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ


def mask_late(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Give each draft of a request the mask of the one before it."""

    def grammar_bitmask(
        manager: Any, requests: Any, ids: Sequence[str], drafts: Mapping[str, Sequence[int]]
    ) -> Any:
        masks = original(manager, requests, ids, drafts)
        for rows in _rows_of_drafts(ids, drafts):
            right = masks[rows].copy()
            masks[rows][1:] = right[:-1]
            tally.count(changed=differ(masks[rows], right))
        return masks

    return grammar_bitmask


def drafts_unmasked(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Mask the token behind the drafts of a request, and none of those that verify them."""

    def grammar_bitmask(
        manager: Any, requests: Any, ids: Sequence[str], drafts: Mapping[str, Sequence[int]]
    ) -> Any:
        masks = original(manager, requests, ids, drafts)
        for rows in _rows_of_drafts(ids, drafts):
            tally.count(changed=differ(masks[rows][:-1], -1))
            masks[rows][:-1] = -1
        return masks

    return grammar_bitmask


def _rows_of_drafts(ids: Sequence[str], drafts: Mapping[str, Sequence[int]]) -> Iterator[slice]:
    """Yield the rows of each request that has drafts: one a draft, and one for the next token."""
    begin = 0
    for name in ids:
        rows = 1 + len(drafts.get(name, ()))
        if rows > 1:
            yield slice(begin, begin + rows)
        begin += rows
