"""Sends planned requests to an engine, wave by wave, and brings back its answers.

A held engine lets go for the steps between planned events: the same batches every time.
"""

import json
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from hybridwatch.engines.control import EngineControl, LiveEngine
from hybridwatch.engines.server import open_http
from hybridwatch.measurement.completions import (
    WANTED,
    Reply,
    build_body,
    is_null_among,
    is_without_numbers,
    join_stream,
    joined,
    parse_completion,
    without_tokens,
)
from hybridwatch.records.run import Completion
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave, list_due_s

COMPLETIONS: Final = "/v1/completions"
ARRIVAL_TIMEOUT_S: Final = 30.0
"""Limit for one request to reach the held engine, or to leave it."""
_POLL_S: Final = 0.002


class _StepEvent(NamedTuple):
    """What happens before an engine step; of one step, requests come before others go."""

    step: int
    goes: bool
    number: int


class Leaver:
    """A client that goes away before it is answered, which the other end sees at once."""

    def __init__(self, url: str, body: Mapping[str, Any]) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=ARRIVAL_TIMEOUT_S)
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


@dataclass(slots=True)
class _StepStage:
    _engine: LiveEngine
    _requests: Sequence[PlannedRequest]
    _send: Callable[[PlannedRequest], Future[Reply]]
    _body: Callable[[PlannedRequest], Mapping[str, Any]]
    _sent: dict[int, Future[Reply]] = field(default_factory=dict)
    _leavers: dict[int, Leaver] = field(default_factory=dict)

    def serve(self) -> list[Reply]:
        """Send requests and let clients go at their steps; who went away has no tokens, ever."""
        self._engine.control.hold()
        try:
            self._play()
        finally:
            self._engine.control.release()
            for leaver in self._leavers.values():  # no client waits that was to go away
                leaver.leave()
        return [
            self._sent[number].result()
            if number in self._sent
            else Reply(without_tokens(request.prompt))
            for number, request in enumerate(self._requests)
        ]

    def _play(self) -> None:
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

    def _events(self) -> Iterator[_StepEvent]:
        for number, request in enumerate(self._requests):
            yield _StepEvent(request.at_step, goes=False, number=number)
            if request.abort_at_step is not None:
                yield _StepEvent(request.abort_at_step, goes=True, number=number)

    def _come(self, number: int) -> None:
        request, before = self._requests[number], self._in_scheduler()
        if request.abort_at_step is None:
            self._sent[number] = self._send(request)
        else:
            url = self._engine.server.url
            self._leavers[number] = Leaver(url, self._body(request))
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
        there = sum(
            self._requests[number].n for number, one in self._sent.items() if not one.done()
        )
        return there + sum(not leaver.is_answered for leaver in self._leavers.values())

    def _in_scheduler(self) -> int:
        return self._engine.control.requests()

    def _await(self, has_come: Callable[[], bool], wanted: str) -> None:
        deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
        while not has_come():
            for answer in self._sent.values():
                if answer.done():
                    answer.result()  # raises what went wrong with it
            if time.monotonic() > deadline:
                raise self._engine.server.error(
                    f"expected {wanted} after {ARRIVAL_TIMEOUT_S:.0f} s, found "
                    f"{self._in_scheduler()} in the scheduler and {self._unanswered()} unanswered"
                )
            time.sleep(_POLL_S)


REQUEST_TIMEOUT_S: Final = 60.0

_SETTLING_LOOKS: Final = 16
"""vLLM takes about twelve turns of its event loop to hand a request that it has counted to the
engine. Each look at the count takes at least two turns more."""

_LONGEST_REASON: Final = 300
RANK_HEADER: Final = "X-data-parallel-rank"

Tokens = tuple[int, ...]


def drive(engine: LiveEngine, waves: Sequence[PlannedWave]) -> tuple[Tokens, ...]:
    """Send every wave, when the one before is done, and give the answers' tokens in their order.

    A pair of engines cannot be held: how many requests share a step is its scheduler's business.
    """
    return tuple(one.completion.tokens for one in drive_replies(engine, waves, {}))


def drive_whole(engine: LiveEngine, waves: Sequence[PlannedWave]) -> tuple[Completion, ...]:
    """Send every wave as ``drive`` does, and bring back the logarithms of each answer too."""
    return tuple(one.completion for one in drive_replies(engine, waves))


def drive_replies(
    engine: LiveEngine, waves: Sequence[PlannedWave], wanted: Mapping[str, Any] = WANTED
) -> list[Reply]:
    """Send every wave as ``drive_whole`` does, and bring back the text of each answer too."""
    answered: list[Reply] = []
    with open_http(engine.server.url, REQUEST_TIMEOUT_S) as http:
        driver = _Driver(engine, http, wanted)
        before: list[Tokens] = []
        for wave in waves:
            turn = _turn(wave, before) if wave.continues else wave
            answers = driver.serve(turn)
            engine.control.drain()
            answered += answers
            before = [
                (*request.prompt, *answer.completion.tokens)
                for request, answer in zip(turn.requests, answers, strict=True)
            ]
    engine.control.await_transfers()
    return answered


def _turn(wave: PlannedWave, before: Sequence[Tokens]) -> PlannedWave:
    """The wave with the earlier turns in front of each prompt."""
    pairs = zip(wave.requests, before, strict=True)
    requests = (replace(request, prompt=(*talk, *request.prompt)) for request, talk in pairs)
    return replace(wave, requests=tuple(requests))


@dataclass(frozen=True, slots=True)
class _Driver:
    _engine: LiveEngine
    _http: httpx.Client
    _wanted: Mapping[str, Any]

    def serve(self, wave: PlannedWave) -> list[Reply]:
        requests = wave.requests
        time.sleep(wave.idle_s)
        with (
            _budgeted(self._engine.control, wave.token_budget),
            _senders(wave.max_concurrency or len(requests)) as senders,
        ):
            if wave.arrival == "steps":
                return _StepStage(
                    self._engine, requests, lambda one: senders.submit(self._send, one), self._body
                ).serve()
            alone = not self._engine.server.launch.engine.disaggregated
            if wave.arrival == "together" and alone:
                sent = self._send_together(requests, senders)
            else:
                sent = self._send_in_time(requests, senders)
            return [answer.result() for answer in sent]

    def _send_in_time(
        self, requests: Sequence[PlannedRequest], senders: ThreadPoolExecutor
    ) -> list[Future[Reply]]:
        sent: dict[int, Future[Reply]] = {}
        begin, due = time.monotonic(), list_due_s(requests)
        for number in sorted(range(len(requests)), key=due.__getitem__):
            time.sleep(max(0.0, begin + due[number] - time.monotonic()))
            request = requests[number]
            if request.after is None:
                sent[number] = senders.submit(self._send, request)
            else:
                sent[number] = senders.submit(self._send_after, sent[request.after], request)
        return [sent[number] for number in range(len(requests))]

    def _send_after(self, earlier: Future[Reply], request: PlannedRequest) -> Reply:
        earlier.result()
        time.sleep(request.delay_s)
        return self._send(request)

    def _send_together(
        self, requests: Sequence[PlannedRequest], senders: ThreadPoolExecutor
    ) -> list[Future[Reply]]:
        """Fill the held engine one by one, so that it has them in the order of the plan."""
        sent: list[Future[Reply]] = []
        self._await_load(0, sent)
        self._engine.control.hold()
        try:
            for request in requests:
                sent.append(senders.submit(self._send, request))
                self._await_load(len(sent), sent)
            for _ in range(_SETTLING_LOOKS):
                self._load()
        finally:
            self._engine.control.release()
        return sent

    def _await_load(self, wanted: int, sent: Sequence[Future[Reply]]) -> None:
        """Wait until the server is at work on so many requests that it has whole.

        No other sign: a held engine makes no step, and the numbers of ``/metrics`` come with steps.
        """
        deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
        while (there := self._load()) != wanted:
            for answer in sent:
                if answer.done():  # the engine is held, so this can only be an error
                    answer.result()
            if time.monotonic() > deadline:
                raise self._engine.server.error(
                    f"expected {wanted} requests in the server after {ARRIVAL_TIMEOUT_S:.0f} s, "
                    f"found {there}"
                )
            time.sleep(_POLL_S)

    def _load(self) -> int:
        try:
            answer = self._http.get("/load").raise_for_status()
        except httpx.HTTPError as error:
            raise self._engine.server.error(f"no answer to /load: {error!r}") from error
        return int(answer.json()["server_load"])

    def _send(self, request: PlannedRequest) -> Reply:
        server = self._engine.server
        headers = {} if request.rank is None else {RANK_HEADER: str(request.rank)}
        try:
            answer = self._http.post(COMPLETIONS, json=self._body(request), headers=headers)
        except httpx.HTTPError as error:
            raise server.error(f"a request was not answered: {error!r}") from error
        if self._wanted and is_without_numbers(answer.status_code, answer.text):
            return Reply(without_tokens(request.prompt))
        if _is_given_up(request, answer.status_code):
            return Reply(without_tokens(request.prompt))
        if answer.status_code != httpx.codes.OK:
            reason = answer.text[:_LONGEST_REASON]
            raise server.error(f"a request was refused ({answer.status_code}): {reason}")
        reply = join_stream(answer.text) if request.streamed else answer.json()
        if "error" in reply:
            if _is_given_up(request, reply["error"].get("code")):
                return Reply(without_tokens(request.prompt))
            reason = json.dumps(reply["error"])[:_LONGEST_REASON]
            raise server.error(f"a stream ended with an error: {reason}")
        return self._read_reply(reply, request)

    def _read_reply(self, answer: dict[str, Any], request: PlannedRequest) -> Reply:
        choices = answer["choices"]
        found = [len(choice.get("token_ids") or ()) for choice in choices]
        if len(found) != request.n or not all(map(request.can_have, found)):
            wanted = f"an answer of {request.max_tokens} token ids"
            if request.n > 1:
                wanted = f"{request.n} answers of {request.max_tokens} token ids"
            raise self._engine.server.error(
                f"expected {wanted}{' in a stream' if request.streamed else ''}, "
                f"found {', '.join(map(str, found))}"
            )
        choice = joined(choices)
        if is_null_among(choice):
            return Reply(without_tokens(request.prompt))
        completion = parse_completion(request.prompt, choice)
        return Reply(completion, choice.get("text") or "", request.streamed)

    def _body(self, request: PlannedRequest) -> dict[str, Any]:
        return build_body(request, self._engine.server.launch.served_name, self._wanted)


def _is_given_up(request: PlannedRequest, code: int | None) -> bool:
    """Whether a request was ended with an error, as vLLM does where it sees a grammar broken.

    That is a bug of the engine and no failure to measure it, as long as the engine goes on.
    """
    has_grammar = request.sampling_params.structured_outputs is not None
    return has_grammar and code == httpx.codes.INTERNAL_SERVER_ERROR


@contextmanager
def _budgeted(control: EngineControl, tokens: int | None) -> Iterator[None]:
    if tokens is None:
        yield
        return
    control.set_token_budget(tokens)
    try:
        yield
    finally:
        control.set_token_budget(None)


@contextmanager
def _senders(at_once: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that send; after an error what has not been sent stays unsent."""
    senders = ThreadPoolExecutor(at_once, thread_name_prefix="wave")
    try:
        yield senders
    finally:
        senders.shutdown(cancel_futures=True)
