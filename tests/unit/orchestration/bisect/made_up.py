"""Builds that are only labels, and a measurer that knows what each of them gives."""

from functools import partial

import numpy as np

from hybridwatch.engines.code_tree import Commit
from hybridwatch.orchestration.bisect.candidates import Candidate, CandidateList
from hybridwatch.orchestration.bisect.journal import open_journal
from hybridwatch.orchestration.bisect.question import ChangeDirection, ProbeOutcome, ProbeState
from hybridwatch.orchestration.bisect.search import BisectSearch, SearchGoal

METRIC = "contract.wrong_tokens"


def counted(**counts: float) -> ProbeOutcome:
    """A measurement of contracts."""
    named = {f"contract.{name}": value for name, value in counts.items()}
    return ProbeOutcome(state=ProbeState.MEASURED, counts=named)


GOOD, BAD = counted(wrong_tokens=0), counted(wrong_tokens=7)
NOT_UP = ProbeOutcome(state=ProbeState.NOT_UP, reason="ValueError: unknown mode")
DEAD = ProbeOutcome(state=ProbeState.DIES, reason="RuntimeError: gone")


class MadeUpMeter:
    """Gives outcomes by label; one that is not known is good."""

    def __init__(self, outcomes=(), slower=()):
        self.outcomes: dict[str, ProbeOutcome] = dict(outcomes)
        self.slower: dict[str, float] = dict(slower)
        self.asked: list[str] = []
        self._rng = np.random.default_rng(5)

    at_once = 1

    def expect(self, makers) -> None:
        """Measures nothing ahead."""

    def contracts(self, label: str) -> ProbeOutcome:
        self.asked.append(label)
        return self.outcomes.get(label, GOOD)

    def times(self, _first: str, label: str, metric: str, blocks: int) -> ProbeOutcome:
        self.asked.append(label)
        if label in self.outcomes:
            return self.outcomes[label]
        ratios = self.slower.get(label, 0.0) + 0.01 * self._rng.standard_normal(blocks)
        return ProbeOutcome(
            state=ProbeState.MEASURED,
            metric=metric,
            ratios=tuple(ratios.tolist()),
            block_minutes=0.1,
        )

    def clearest(self, first: str, label: str, _verdict, blocks: int) -> ProbeOutcome:
        if not self.slower.get(label):
            return ProbeOutcome(state=ProbeState.MEASURED)
        return self.times(first, label, "tpot", blocks)


def a_list(last: int, *, made=None) -> CandidateList:
    """Candidates ``0`` to the last one, as commits."""
    make = made or (lambda label: label)
    return CandidateList(
        "commits",
        tuple(
            Candidate(
                str(at),
                f"{at} title",
                partial(make, str(at)),
                commit=Commit(str(at), "a", f"title (#{at})", ("vllm/v1/worker.py",)),
            )
            for at in range(last + 1)
        ),
    )


def a_bisect_search(
    tmp_path, measurer, *, wanted=ChangeDirection.REGRESSION, metric="", seconds=60.0, clock=None
):
    """A search whose journal is in a folder."""
    journal = open_journal(tmp_path, "smoke/x", {"ends": "0 9"}, discard=False)
    more = {"clock": clock} if clock else {}
    return BisectSearch(
        SearchGoal(wanted, metric, (METRIC,)), measurer, journal, print, seconds, **more
    )
