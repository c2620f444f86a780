"""A case: which requests come, at which engine step, and what becomes of them; plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """One request of a phase.

    Attributes:
        at_step: Engine steps of the phase that come before it; once the engine has run out of
            requests it comes at once.
        input_tokens: Length of its prompt, shared prefix included.
        output_tokens: Length of its answer.
        shared_prefix_tokens: How much of the case's common text its prompt begins with.
        abort_step: Engine steps of the phase after which it is aborted, at least ``at_step``; None
            when it is answered. One that is done by then is not aborted.
    """

    at_step: int
    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0
    abort_step: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzPhase:
    """Requests that come one after the other, until the engine has none left.

    Attributes:
        requests: In the order in which they come.
        token_budget: Most tokens of a step; None for the engine's own.
    """

    requests: tuple[CaseRequest, ...]
    token_budget: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """What an engine goes through from a fresh state on.

    Attributes:
        acts: Its phases, one after the other, with the engine at rest between them.
        dummy_batches: Dummy batches each time the engine comes to rest.
    """

    acts: tuple[FuzzPhase, ...] = ()
    dummy_batches: int = 0

    @property
    def requests(self) -> tuple[CaseRequest, ...]:
        """The requests of all phases."""
        return tuple(request for phase in self.acts for request in phase.requests)

    @property
    def aborts(self) -> int:
        """How many requests are to be aborted."""
        return sum(request.abort_step is not None for request in self.requests)


def tidied(case: FuzzCase) -> FuzzCase:
    """Leave out what makes no difference: empty phases, and steps before the first request."""
    phases = tuple(_from_the_first(phase) for phase in case.acts if phase.requests)
    return replace(case, acts=phases, dummy_batches=case.dummy_batches if phases else 0)


def _from_the_first(phase: FuzzPhase) -> FuzzPhase:
    begin = phase.requests[0].at_step
    return replace(phase, requests=tuple(_earlier(request, begin) for request in phase.requests))


def _earlier(request: CaseRequest, by: int) -> CaseRequest:
    abort = None if request.abort_step is None else request.abort_step - by
    return replace(request, at_step=request.at_step - by, abort_step=abort)


class CaseBuilder:
    """Writes a case down, one thing that happens after the other."""

    def __init__(self, dummy_batches: int = 0) -> None:
        self._dummy_batches = dummy_batches
        self._phases: list[FuzzPhase] = []
        self._budget: int | None = None
        self._requests: list[CaseRequest] = []
        self._step = 0

    @property
    def asked(self) -> Sequence[CaseRequest]:
        """Every request so far, the newest first."""
        before = [request for phase in self._phases for request in phase.requests]
        return [*before, *self._requests][::-1]

    def ask(self, input_tokens: int, output_tokens: int, shared_prefix_tokens: int) -> None:
        """Let a request come; at least the last token of a prompt is its own."""
        shared = min(shared_prefix_tokens, input_tokens - 1)
        self._requests.append(CaseRequest(self._step, input_tokens, output_tokens, shared))

    def make_steps(self, steps: int) -> None:
        """Let the engine make steps."""
        self._step += steps

    def abort(self, back: int) -> None:
        """Abort a request of this phase, counted from the newest; nothing when there is none."""
        at = len(self._requests) - 1 - back
        if at >= 0 and self._requests[at].abort_step is None:
            self._requests[at] = replace(self._requests[at], abort_step=self._step)

    def rest(self, budget: int | None) -> None:
        """Let the engine come to rest, and go on with another token budget."""
        self._phases.append(FuzzPhase(tuple(self._requests), self._budget))
        self._requests, self._step, self._budget = [], 0, budget

    def case(self) -> FuzzCase:
        """Give what was written, without what makes no difference."""
        last = FuzzPhase(tuple(self._requests), self._budget)
        return tidied(FuzzCase((*self._phases, last), self._dummy_batches))
