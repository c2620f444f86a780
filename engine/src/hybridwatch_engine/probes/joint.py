"""Several probes that are started, stopped and asked as one."""

from collections.abc import Sequence
from typing import Any, Protocol


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
        """End all of them, the last one first, and hand out everything that was seen."""
        seen = [probe.stop() for probe in reversed(self._probes)]
        return {name: count for counts in reversed(seen) for name, count in counts.items()}
