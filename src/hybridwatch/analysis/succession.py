"""When one definition of a scenario takes the place of another, and when both are measured in turn.

The digest of a scenario's definition is part of what makes numbers comparable. A definition that
was changed ends a series, and what was bad in it is answered by the next one; two loads that are
measured each night are two series that both go on.
"""

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeVar

_NIGHT: Final = timedelta(days=1)
"""What is measured within it may be one night's loads, of which the last is new."""

_NAMED: Final = 3
_LONGEST: Final = 40
"""Characters of a setting; of longer ones, such as digests, the beginning tells them apart."""
_SHORT: Final = 8

_Digest = TypeVar("_Digest", bound=Hashable)


def successors(measured: Iterable[tuple[_Digest, datetime]]) -> Mapping[_Digest, _Digest]:
    """Say which definition took the place of each that has ended.

    One has ended when another began after its last run and was measured more than a night later.

    ``measured`` has the definition of each run and its start, of one scenario on one testbed, in
    any order. Gives for each that has ended the one that began next, which may have ended itself.
    """
    first: dict[_Digest, datetime] = {}
    last: dict[_Digest, datetime] = {}
    for digest, started_at in measured:
        first[digest] = min(first.get(digest, started_at), started_at)
        last[digest] = max(last.get(digest, started_at), started_at)
    found: dict[_Digest, _Digest] = {}
    for digest, end in last.items():
        later = [one for one in first if first[one] > end and last[one] > end + _NIGHT]
        if later:
            found[digest] = min(later, key=first.__getitem__)
    return found


def find_successor(digest: _Digest, successors: Mapping[_Digest, _Digest]) -> _Digest:
    """Give what goes on today in place of a definition: itself, where it has not ended."""
    while digest in successors:
        digest = successors[digest]
    return digest


def change_text(
    old: Mapping[str, str],
    new: Mapping[str, str],
    versions: tuple[int, int],
    digests: tuple[str, str],
) -> str:
    """Say what a definition changed: its settings, else its version, else no more than its digest.

    ``versions`` and ``digests`` are those before and after. Settings are empty where they are not
    known.
    """
    changed = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    if changed and old and new:
        parts = [f"{name} {_shown(old.get(name))} → {_shown(new.get(name))}" for name in changed]
        more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
        return ", ".join(parts[:_NAMED]) + more
    if versions[0] != versions[1]:
        return "version {} → {}".format(*versions)
    before, after = (digest[:_SHORT] for digest in digests)
    return f"the scenario's definition changed, digest {before} → {after}"


def _shown(setting: str | None) -> str:
    if setting is None:
        return "none"
    return setting if len(setting) <= _LONGEST else f"{setting[:_SHORT]}…"
