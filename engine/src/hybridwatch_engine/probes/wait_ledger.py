"""What a probe of waits writes down: how many and how long, by engine step and by call site."""

from collections import Counter, defaultdict
from threading import get_ident
from typing import Any


class WaitLedger:
    """Waits of the thread that makes the steps; those of other threads hold no step up."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._waited_ns: list[int] = []
        self._spans_ns: list[tuple[int, int]] = []
        self._sites: Counter[str] = Counter()
        self._times_ns: Counter[str] = Counter()
        self._kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._untimed = 0
        self._others, self._others_ns = 0, 0
        self._thread = 0

    def begin_step(self, now_ns: int) -> None:
        """From now on whatever this thread waits for belongs to a new step."""
        self._thread = get_ident()
        self.counts.append(0)
        self._waited_ns.append(0)
        self._spans_ns.append((now_ns, now_ns))

    def extend_step(self, now_ns: int) -> None:
        """Say that this thread has still worked on its step until now."""
        if self.counts and get_ident() == self._thread:
            self._spans_ns[-1] = self._spans_ns[-1][0], now_ns

    def add(self, site: str, kind: str, taken_ns: int | None, number: int = 1) -> None:
        """Write waits of this thread down.

        Args:
            site: Who waited.
            kind: What for.
            taken_ns: How long; ``None`` when nobody could tell.
            number: How many waits that were.
        """
        if get_ident() != self._thread:
            self._others += number
            self._others_ns += taken_ns or 0
            return
        self.counts[-1] += number
        self._waited_ns[-1] += taken_ns or 0
        self._sites[site] += number
        self._times_ns[site] += taken_ns or 0
        self._kinds[site][kind] += number
        self._untimed += number if taken_ns is None else 0

    def summary(self) -> dict[str, Any]:
        """Everything, in seconds; the keys are explained at ``DeviceWaitsProbe.stop``."""
        return {
            "reads_per_step": self.counts,
            "sites": dict(self._sites.most_common()),
            "site_seconds": {site: time / 1e9 for site, time in self._times_ns.items()},
            "site_kinds": {site: dict(kinds) for site, kinds in self._kinds.items()},
            "wait_seconds_per_step": [time / 1e9 for time in self._waited_ns],
            "step_seconds": [(end - begin) / 1e9 for begin, end in self._spans_ns],
            "untimed": self._untimed,
            "other_threads": {"waits": self._others, "seconds": self._others_ns / 1e9},
        }
