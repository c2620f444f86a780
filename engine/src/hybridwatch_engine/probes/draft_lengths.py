"""The lengths that the graphs of drafts read, held against what the scheduler says afterwards.

Model runner V2 makes the drafts of a step while only the device knows how many of the last ones
were taken. The scheduler says it with the next step: a request then has so many tokens computed,
and the k-th draft after the first was one of so many tokens and k more
(``v1/worker/gpu/spec_decode/target_dependent_ar/speculator.py``). A wrong length costs no token,
since drafts are verified: fewer are taken, and every answer stays right.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hybridwatch_engine.probes.scheduled import ScheduledRow


class DraftLengths:
    """What was read of each request, until its next step."""

    def __init__(self) -> None:
        self._read: dict[str, list[int]] = {}

    def note(self, requests: Iterable[str], lengths: Sequence[int]) -> None:
        """Keep what a graph is about to read of each request, row by row."""
        for request, length in zip(requests, lengths, strict=False):
            self._read.setdefault(request, []).append(length)

    def count_wrong(self, output: Any, batch: Mapping[str, ScheduledRow], most: int) -> int:
        """Count the lengths that were wrong of the requests that go on.

        Args:
            output: The scheduler's output of the step.
            batch: The requests of the step by id.
            most: Tokens that a request may have (``max_model_len``); drafts are clipped there.
        """
        for request in (*output.finished_req_ids, *output.scheduled_cached_reqs.resumed_req_ids):
            self._read.pop(request, None)
        return sum(
            length != min(row.computed + ahead, most)
            for request, row in batch.items()
            for ahead, length in enumerate(self._read.pop(request, ()), start=1)
        )
