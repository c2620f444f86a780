"""Has cases made and played until one fails or the time is up, and makes that one smaller.

Cases are made by hypothesis' rule-based state machine. The rules write a case down, which is played
when it is over. So what comes next hangs on the seed alone, and a case that was played once need
not be played again.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hybridwatch_lab.fuzz.case import CaseBuilder, CaseRequest, FuzzCase, FuzzPhase, SearchSpace

_STEPS: Final = (1, 2, 3, 5, 8, 20)
_FAR_BACK: Final = 3

_machine: Final = st.runner()
_inputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.inputs))
_outputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.outputs))
_shares: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.shares))
_budgets: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.budgets))
_idle: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.idle_batches))


class CaseMachine(RuleBasedStateMachine):
    """Builds and plays one case; a subclass sets the space and the player."""

    space: ClassVar[SearchSpace]
    play: ClassVar[Callable[[FuzzCase], None]]

    def __init__(self) -> None:
        super().__init__()
        self._builder = CaseBuilder()

    @initialize(batches=_idle)
    def begin(self, batches: int) -> None:
        """Choose what the whole case has in common."""
        self._builder = CaseBuilder(batches)

    @rule(length=_inputs, answer=_outputs, shared=_shares)
    def ask(self, length: int, answer: int, shared: int) -> None:
        """Let a request come."""
        self._builder.add_request(length, answer, shared)

    @rule(length=_inputs, answer=_outputs, steps=st.sampled_from(_STEPS))
    def ask_and_go_on(self, length: int, answer: int, steps: int) -> None:
        """Let a request come that shares nothing, and the engine make steps."""
        self._builder.add_request(length, answer, 0)
        self._builder.make_steps(steps)

    @precondition(lambda self: self._builder.sent)
    @rule(back=st.integers(0, _FAR_BACK), answer=_outputs)
    def ask_again(self, back: int, answer: int) -> None:
        """Repeat an earlier request; only the shared part of its prompt stays the same."""
        sent = self._builder.sent
        before = sent[min(back, len(sent) - 1)]
        self._builder.add_request(before.input_tokens, answer, before.shared_prefix_tokens)

    @rule(steps=st.sampled_from(_STEPS))
    def make_steps(self, steps: int) -> None:
        """Let the engine make steps."""
        self._builder.make_steps(steps)

    @rule(back=st.integers(0, _FAR_BACK))
    def abort(self, back: int) -> None:
        """Abort a request."""
        self._builder.abort(back)

    @rule(budget=_budgets)
    def rest(self, budget: int | None) -> None:
        """Let the engine come to rest, and go on with another token budget."""
        self._builder.rest(budget)

    def teardown(self) -> None:
        """Play the case."""
        if isinstance(sys.exc_info()[1], StopTest):
            return  # hypothesis has given this one up before its end
        case = self._builder.case()
        if case.acts:
            type(self).play(case)


def build_machine(space: SearchSpace, play: Callable[[FuzzCase], None]) -> type[CaseMachine]:
    """Make the class of state machines that make cases."""
    return type("Fuzzer", (CaseMachine,), {"space": space, "play": staticmethod(play)})


ACTIONS: Final = 16
"""Things that happen in a case before it is over."""

_WITHOUT_END: Final = 1_000_000
_PULSE: Final = FuzzCase((FuzzPhase((CaseRequest(0, 3, 2),)),))
"""A case that a healthy engine always passes; one that fails it is not tested further."""

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
        limit_s: After so long no case is begun.
        most: Cases that are made at most; None for as many as there is time for.
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
        """Play the cases of a seed; gives the first failure, made smaller, or ``None``."""
        self._begun = self.clock()
        self._has_pulse = not self.target.verdict(_PULSE)
        if not self._has_pulse:
            self._fail(_PULSE)
        else:
            self._search(number)
        if self._smallest is None or self._first is None:
            return None
        shrunk_in_s = self.clock() - self._begun - self._found_after_s
        case, faults, repeats = self._on_fresh_engine(self._first, self._smallest)
        return FuzzFailure(case, faults, self._first, self._found_after_s, shrunk_in_s, repeats)

    def _search(self, number: int) -> None:
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


def case_lines(case: FuzzCase) -> Iterator[str]:
    """Describe a case, a line for each action."""
    number = 0
    for phase in case.acts:
        most = "" if phase.token_budget is None else f", at most {phase.token_budget} tokens a step"
        yield f"from an engine at rest{most}:"
        for step, line in sorted(_happenings(phase, number)):
            yield f"  before step {step}: {line}"
        number += len(phase.requests)
        dummies = f", then {case.dummy_batches} dummy batches" if case.dummy_batches else ""
        yield f"  until the engine is at rest{dummies}"


def failure_lines(failure: FuzzFailure, seed: int) -> Iterator[str]:
    """Say what was found: the case, what was wrong, and how it was found."""
    yield from case_lines(failure.case)
    yield "what was wrong:"
    yield from (f"  {fault}" for fault in failure.faults)
    if not failure.repeats:
        yield (
            "not repeatable: on an engine on which nothing else was played this case passes, so "
            "what was wrong hangs on what ran before, or on chance"
        )
    yield (
        f"seed {seed}: found after {failure.found_after_s:.0f} s in a case of "
        f"{len(failure.first.requests)} requests; {failure.shrunk_in_s:.0f} s to make it one of "
        f"{len(failure.case.requests)}"
    )


def _happenings(phase: FuzzPhase, first: int) -> Iterator[tuple[int, str]]:
    for at, request in enumerate(phase.requests, first):
        yield request.at_step, f"request {at} comes, {_describe_request(request)}"
        if request.abort_step is not None:
            yield request.abort_step, f"request {at} is aborted, if it is not answered yet"


def _describe_request(request: CaseRequest) -> str:
    shared = request.shared_prefix_tokens
    common = f", {shared} of them the common text" if shared else ""
    return f"{request.input_tokens} tokens{common}, for an answer of {request.output_tokens}"
