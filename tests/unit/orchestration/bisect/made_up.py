"""Builds that are only labels, and a meter that knows what each of them gives."""

from functools import partial

import numpy as np

from hybridwatch.engines.commits import Commit
from hybridwatch.orchestration.bisect.candidate import Candidate, Rung
from hybridwatch.orchestration.bisect.hunt import Hunt, Wish
from hybridwatch.orchestration.bisect.journal import journal_of
from hybridwatch.orchestration.bisect.outcome import Outcome, State
from hybridwatch.orchestration.bisect.question import Wanted

METRIC = "contract.wrong_tokens"


def counted(**counts: float) -> Outcome:
    """A measurement of contracts."""
    named = {f"contract.{name}": value for name, value in counts.items()}
    return Outcome(state=State.MEASURED, counts=named)


GOOD, BAD = counted(wrong_tokens=0), counted(wrong_tokens=7)
NOT_UP = Outcome(state=State.NOT_UP, reason="ValueError: unknown mode")
DEAD = Outcome(state=State.DIES, reason="RuntimeError: gone")


class MadeUpMeter:
    """Gives outcomes by label; one that is not known is good.

    Args:
        outcomes: Of contracts.
        slower: Log ratio of a label's time to the first one's.
    """

    def __init__(self, outcomes=(), slower=()):
        self.outcomes: dict[str, Outcome] = dict(outcomes)
        self.slower: dict[str, float] = dict(slower)
        self.asked: list[str] = []
        self._rng = np.random.default_rng(5)

    at_once = 1

    def expect(self, makers) -> None:
        """Measures nothing ahead."""

    def contracts(self, label: str) -> Outcome:
        self.asked.append(label)
        return self.outcomes.get(label, GOOD)

    def times(self, _first: str, label: str, metric: str, blocks: int) -> Outcome:
        self.asked.append(label)
        if label in self.outcomes:
            return self.outcomes[label]
        ratios = self.slower.get(label, 0.0) + 0.01 * self._rng.standard_normal(blocks)
        return Outcome(
            state=State.MEASURED, metric=metric, ratios=tuple(ratios.tolist()), block_minutes=0.1
        )

    def clearest(self, first: str, label: str, _verdict, blocks: int) -> Outcome:
        if not self.slower.get(label):
            return Outcome(state=State.MEASURED)
        return self.times(first, label, "tpot", blocks)


def a_rung(last: int, *, made=None) -> Rung:
    """Candidates ``0`` to the last one, as commits."""
    make = made or (lambda label: label)
    return Rung(
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


def a_hunt(tmp_path, meter, *, wanted=Wanted.REGRESSION, metric="", seconds=60.0, clock=None):
    """A hunt whose journal is in a folder."""
    journal = journal_of(tmp_path, "smoke/x", {"ends": "0 9"}, anew=False)
    more = {"clock": clock} if clock else {}
    return Hunt(Wish(wanted, metric, (METRIC,)), meter, journal, print, seconds, **more)
