"""Has cases made and played until one fails or the time is up, and makes that one smaller."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from hybridwatch_lab.fuzz.case import CaseRequest, FuzzCase, FuzzPhase
from hybridwatch_lab.fuzz.machine import build_machine
from hybridwatch_lab.fuzz.space import SearchSpace

ACTIONS: Final = 16
"""Things that happen in a case before it is over."""

_WITHOUT_END: Final = 1_000_000
_PULSE: Final = FuzzCase((FuzzPhase((CaseRequest(0, 3, 2),)),))
"""What a healthy engine always tells right; one that does not is not asked any further."""

Faults = tuple[str, ...]


class FuzzTarget(Protocol):
    """Plays cases, each from a fresh state on."""

    def verdict(self, case: FuzzCase) -> Faults:
        """Play a case, and say what was wrong with it."""

    def open_anew(self) -> None:
        """Take another engine, which nothing was played on."""


@dataclass(frozen=True, slots=True)
class FuzzFailure:
    """A case that shows something wrong.

    Attributes:
        case: As small as it became.
        faults: What was wrong.
        first: The case that it was made of.
        found_after_s: From the begin of the search.
        shrunk_in_s: What it took to make it smaller.
        repeats: Whether an engine that nothing else was played on fails as well.
    """

    case: FuzzCase
    faults: Faults
    first: FuzzCase
    found_after_s: float
    shrunk_in_s: float
    repeats: bool


class _WrongError(Exception):
    """A case failed; hypothesis looks for a smaller one."""


class _OverError(BaseException):
    """The search is over; hypothesis does not look at this one."""


@dataclass(slots=True)
class FuzzSearch:
    """One search.

    Attributes:
        target: Plays the cases.
        space: What they are made of.
        limit_s: After so long no case is begun.
        most: Cases that are made at most; None for as many as there is time for.
        clock: Seconds.
    """

    target: FuzzTarget
    space: SearchSpace
    limit_s: float
    most: int | None = None
    clock: Callable[[], float] = time.monotonic
    _begun: float = 0.0
    _told: int = 0
    _verdicts: dict[FuzzCase, Faults] = field(default_factory=dict)
    _first: FuzzCase | None = None
    _smallest: FuzzCase | None = None
    _found_after_s: float = 0.0
    _has_pulse: bool = False
    _repeats: bool = True

    def run(self, number: int) -> FuzzFailure | None:
        """Play the cases of a seed.

        Args:
            number: The seed; the same one gives the same cases.

        Returns:
            The first failure, made smaller; ``None`` when there was none.
        """
        self._begun = self.clock()
        self._has_pulse = not self.target.verdict(_PULSE)
        if not self._has_pulse:
            self._fail(_PULSE)
        else:
            self._tell(number)
        if self._smallest is None or self._first is None:
            return None
        shrunk_in_s = self.clock() - self._begun - self._found_after_s
        case, faults, repeats = self._on_fresh_engine(self._first, self._smallest)
        return FuzzFailure(case, faults, self._first, self._found_after_s, shrunk_in_s, repeats)

    def _tell(self, number: int) -> None:
        machine = seed(number)(build_machine(self.space, self._play))
        options = settings(
            max_examples=self.most or _WITHOUT_END,
            stateful_step_count=ACTIONS,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            print_blob=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        try:
            run_state_machine_as_test(machine, settings=options)
        except (_WrongError, _OverError):
            return

    def _play(self, case: FuzzCase) -> None:
        known = self._verdicts.get(case)
        if known is None and self._is_late():
            if self._first is None:
                raise _OverError
            return  # the time to make it smaller is up: what was not played is no failure
        faults = self._verdict(case) if known is None else known
        self._verdicts[case] = faults
        if faults:
            if known is None:
                self._fail(case)
            raise _WrongError

    def _verdict(self, case: FuzzCase) -> Faults:
        faults = self.target.verdict(case)
        if faults and self._first is None:
            return self._confirmed(case, faults)
        if faults and self._has_pulse and self.target.verdict(_PULSE):
            # It is the engine that was left unwell, by this case or by another one.
            self.target.open_anew()
            return self.target.verdict(case)
        return faults

    def _confirmed(self, case: FuzzCase, faults: Faults) -> Faults:
        """Play a first failing case again; one that fails once in a row is the end."""
        if self.target.verdict(case):
            return faults
        self.target.open_anew()
        if self.target.verdict(case):
            return faults
        self._verdicts[case] = faults
        self._fail(case)
        self._repeats = False
        raise _OverError

    def _fail(self, case: FuzzCase) -> None:
        if self._first is None:
            self._first, self._found_after_s = case, self.clock() - self._begun
        self._smallest = min(self._smallest or case, case, key=_size)

    def _is_late(self) -> bool:
        return self.clock() - self._begun > self.limit_s

    def _on_fresh_engine(
        self, first: FuzzCase, smallest: FuzzCase
    ) -> tuple[FuzzCase, Faults, bool]:
        """Play the smallest case, or if that passes the first one, on an engine of its own."""
        if self._repeats:
            for case in dict.fromkeys((smallest, first)):
                self.target.open_anew()
                faults = self.target.verdict(case)
                if faults:
                    return case, faults, True
        return smallest, self._verdicts.get(smallest, ()), False


def _size(case: FuzzCase) -> tuple[int, ...]:
    """By how much a reader has to follow: requests first, then phases, aborts and tokens."""
    requests = case.requests
    return (
        len(requests),
        len(case.acts),
        case.aborts,
        sum(one.input_tokens + one.output_tokens for one in requests),
        sum(one.at_step for one in requests),
    )
