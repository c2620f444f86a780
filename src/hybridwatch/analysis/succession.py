"""When one definition of a scenario takes the place of another, and when both are measured in turn.

The digest of a scenario's definition is part of what makes numbers comparable. A definition that
was changed ends a series, and what was bad in it is answered by the next one; two loads that are
measured each night are two series that go on beside each other.
"""

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeVar

_NIGHT: Final = timedelta(days=1)
"""What is measured within it may be one night's loads, of which the last is new."""

_Digest = TypeVar("_Digest", bound=Hashable)


def successors(measured: Iterable[tuple[_Digest, datetime]]) -> Mapping[_Digest, _Digest]:
    """Say which definition took the place of each that has ended.

    One has ended when another began after its last run and was measured more than a night later.

    Args:
        measured: The definition of each run and its start, of one scenario on one testbed, in any
            order.

    Returns:
        For each that has ended the one that began next, or what took that one's place in turn.
    """
    first: dict[_Digest, datetime] = {}
    last: dict[_Digest, datetime] = {}
    for digest, started_at in measured:
        first[digest] = min(first.get(digest, started_at), started_at)
        last[digest] = max(last.get(digest, started_at), started_at)
    found: dict[_Digest, _Digest] = {}
    for digest in sorted(last, key=last.__getitem__, reverse=True):
        later = [
            other
            for other, began in first.items()
            if began > last[digest] and last[other] > last[digest] + _NIGHT
        ]
        if later:
            heir = min(later, key=first.__getitem__)
            found[digest] = found.get(heir, heir)
    return found
