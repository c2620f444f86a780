"""One page of a list: bounded, and the next one begins behind its last entry."""

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from hybridwatch.api.problem import missing
from hybridwatch.api.queries import PageQuery

_Entry = TypeVar("_Entry")


class Cut(NamedTuple):
    """Where a page lies in its list, and the cursor of the next; ``None`` behind the last."""

    start: int
    end: int
    next: str | None


def cut(keys: Sequence[str], query: PageQuery) -> Cut:
    """Find the wanted page.

    What is new at the beginning of a list moves nothing: a cursor names an entry, not a place.

    Args:
        keys: Of every entry, in order.
        query: What is wanted.

    Raises:
        ProblemError: The cursor is none of ours, or its entry is gone.
    """
    start = 0
    if query.cursor:
        try:
            start = keys.index(_decoded(query.cursor)) + 1
        except ValueError:
            raise missing("cursor", "`next` of a page of this list", query.cursor) from None
    end = min(start + query.limit, len(keys))
    return Cut(start, end, _encoded(keys[end - 1]) if end < len(keys) else None)


def _encoded(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> str:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(cursor) from error
