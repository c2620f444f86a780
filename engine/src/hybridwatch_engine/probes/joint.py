"""Several probes that are started, stopped and asked as one."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

UNSUPPORTED: Final = "unsupported"
"""Key of what a probe could not watch: name of each count that is not known, with the reason."""


class Probe(Protocol):
    """Something that can watch for a while."""

    def start(self) -> None:
        """Begin from zero."""

    def stop(self) -> dict[str, Any]:
        """End, and hand out what was seen."""


class JointProbe:
    """Probes that watch together.

    Args:
        probes: The probes; no two of them count under one name.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes

    def start(self) -> None:
        """Let all of them begin from zero."""
        for probe in self._probes:
            probe.start()

    def stop(self) -> dict[str, Any]:
        """End all of them, the last one first, and hand out everything that was seen.

        Returns:
            Counts by name, and ``unsupported`` when there is something that one could not watch.
        """
        seen = [probe.stop() for probe in reversed(self._probes)]
        unsupported: dict[str, str] = {}
        for counts in reversed(seen):
            unsupported |= counts.pop(UNSUPPORTED, {})
        merged = {name: count for counts in reversed(seen) for name, count in counts.items()}
        return {**merged, UNSUPPORTED: unsupported} if unsupported else merged
