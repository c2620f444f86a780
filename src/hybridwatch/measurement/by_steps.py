"""Lets requests come and go at engine steps that a plan names.

The engine is held, and lets go for so many steps as lie between one event and the next. So the same
plan gives the same batches every time, however fast the machine is.
"""

import json
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from hybridwatch.measurement.completions import without_tokens
from hybridwatch.measurement.live_engine import LiveEngine
from hybridwatch.records.trial_parts import Completion
from hybridwatch.scenarios.expansion import PlannedRequest

COMPLETIONS: Final = "/v1/completions"
TIMEOUT_S: Final = 30.0
"""Limit for one request to reach the held engine, or to leave it."""
_POLL_S: Final = 0.002

Sent = Future[Completion]


class Ways(NamedTuple):
    """How requests are sent: ``body`` is the JSON for a client of its own that may go away."""

    send: Callable[[PlannedRequest], Sent]
    body: Callable[[PlannedRequest], Mapping[str, Any]]


class _StepEvent(NamedTuple):
    """What happens before an engine step; of one step, requests come before others go."""

    step: int
    goes: bool
    number: int


class Leaver:
    """A client that goes away before it is answered.

    Nothing waits at its end of the connection, so that closing it is seen at the other end at once.
    """

    def __init__(self, url: str, body: Mapping[str, Any]) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", COMPLETIONS, json.dumps(body), headers)

    @property
    def is_answered(self) -> bool:
        """Whether an answer has begun to arrive."""
        readable, _, _ = select.select([self._connection.sock], [], [], 0)
        return bool(readable)

    def leave(self) -> None:
        """Close the connection; may be called again."""
        self._connection.close()


def serve_by_steps(
    engine: LiveEngine, requests: Sequence[PlannedRequest], ways: Ways
) -> list[Completion]:
    """Send requests at their steps to an engine without any, and let clients go away at theirs.

    Returns:
        The answers in the order of the plan; without tokens where the client went away, even if it
        was answered before.

    Raises:
        EngineError: A request did not reach the scheduler or did not leave it.
    """
    stage = _StepStage(engine, requests, ways)
    engine.control.hold()
    try:
        stage.play()
    finally:
        engine.control.release()
        stage.clear()
    answers = stage.sent
    return [
        answers[number].result() if number in answers else without_tokens(request.prompt)
        for number, request in enumerate(requests)
    ]


class _StepStage:
    """The requests of one wave, while the engine is held between its steps."""

    def __init__(self, engine: LiveEngine, requests: Sequence[PlannedRequest], ways: Ways) -> None:
        self.sent: dict[int, Sent] = {}
        self._leavers: dict[int, Leaver] = {}
        self._engine = engine
        self._requests = requests
        self._ways = ways

    def play(self) -> None:
        """Go from event to event; an engine that has nothing left to do gets the next at once."""
        self._await(lambda: self._in_scheduler() == 0, "no request in the scheduler")
        step = 0
        for event in sorted(self._events()):
            if event.step > step:
                self._engine.control.run_steps(event.step - step)
                step = event.step
            if event.goes:
                self._go(event.number)
            else:
                self._come(event.number)

    def clear(self) -> None:
        """Let no client wait that was to go away."""
        for leaver in self._leavers.values():
            leaver.leave()

    def _events(self) -> Iterator[_StepEvent]:
        for number, request in enumerate(self._requests):
            yield _StepEvent(request.at_step, goes=False, number=number)
            if request.abort_at_step is not None:
                yield _StepEvent(request.abort_at_step, goes=True, number=number)

    def _come(self, number: int) -> None:
        request, before = self._requests[number], self._in_scheduler()
        if request.abort_at_step is None:
            self.sent[number] = self._ways.send(request)
        else:
            url = self._engine.server.url
            self._leavers[number] = Leaver(url, self._ways.body(request))
        self._await(
            lambda: self._in_scheduler() == before + request.n,
            f"{before + request.n} requests in the scheduler",
        )

    def _go(self, number: int) -> None:
        """Let a client go away; one that has its answer changes nothing by it."""
        self._await(lambda: self._unanswered() == self._in_scheduler(), "answers to arrive")
        leaver, before = self._leavers.pop(number), self._in_scheduler()
        answered = leaver.is_answered
        leaver.leave()
        if not answered:
            self._await(
                lambda: self._in_scheduler() == before - 1,
                f"{before - 1} requests in the scheduler after one was aborted",
            )

    def _unanswered(self) -> int:
        there = sum(self._requests[number].n for number, one in self.sent.items() if not one.done())
        return there + sum(not leaver.is_answered for leaver in self._leavers.values())

    def _in_scheduler(self) -> int:
        return self._engine.control.requests()

    def _await(self, has_come: Callable[[], bool], wanted: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not has_come():
            for answer in self.sent.values():
                if answer.done():
                    answer.result()  # raises what went wrong with it
            if time.monotonic() > deadline:
                raise self._engine.server.error(
                    f"expected {wanted} after {TIMEOUT_S:.0f} s, found {self._in_scheduler()} in "
                    f"the scheduler and {self._unanswered()} unanswered"
                )
            time.sleep(_POLL_S)
