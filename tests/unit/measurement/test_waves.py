"""How planned requests are sent, watched from the server's end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.errors import EngineError
from hybridwatch.measurement import waves
from hybridwatch.measurement.waves import drive, drive_whole
from hybridwatch.records.run import CloseCall, Completion
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from hybridwatch.scenarios.sampling import SamplingParams, StructuredOutputs
from tests.unit.measurement.fake_engines import JsonHandler, behind_server
from tests.waiting import LIMIT_S, wait_until


class FakeEngine:
    """An engine that says the prompt's first token again and again, with its own diary.

    A prompt that starts with 0 is refused, one that starts with 1 gets no token ids, and one that
    starts with 2 has logarithms that are no numbers.
    """

    def __init__(self) -> None:
        self.diary: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.in_flight = self.most_in_flight = 0
        self.together = threading.Barrier(1)
        """As many requests as this are answered at a time, none before all of them are there."""
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.deaf = False
        self.logprobs: Any = None
        self.ends_after = 1 << 20
        """Tokens after which it ends every answer."""
        self.more: dict[str, Any] = {}
        """What else its answers have."""
        self._changed = threading.Condition()
        self._held = False

    # What the harness calls on the control channel.

    def hold(self) -> None:
        self._turn("hold", held=True)

    def release(self) -> None:
        self._turn("release", held=False)

    def drain(self) -> None:
        assert self.in_flight == 0
        self.diary.append("drain")

    def await_transfers(self) -> None:
        pass

    def _turn(self, word: str, *, held: bool) -> None:
        with self._changed:
            self.diary.append(word)
            self._held = held
            self._changed.notify_all()

    # What it does with a request.

    def load(self) -> int:
        return 0 if self.deaf else self.in_flight

    def answer(self, body: dict[str, Any], headers: Any) -> tuple[int, dict[str, Any]]:
        first = body["prompt"][0]
        with self._changed:
            self.diary.append(first)
            self.bodies.append(body)
            self.headers.append(headers)
            if first == 0:
                return 400, {"error": "no such prompt"}
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self._changed.wait_for(lambda: not self._held, timeout=LIMIT_S)
        self.together.wait(LIMIT_S)
        self.may_answer.wait(LIMIT_S)
        with self._changed:
            self.in_flight -= 1
        if first == 2 and "logprobs" in body:
            text = "Out of range float values are not JSON compliant"
            return 400, {"error": {"message": text}}
        if first == 3:
            return 500, {"error": {"message": "Internal server error", "code": 500}}
        ids = None if first == 1 else [first] * min(body["max_tokens"], self.ends_after)
        return 200, {"choices": [{"token_ids": ids, "logprobs": self.logprobs, **self.more}]}


def handler_of(engine: FakeEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler):
        def do_GET(self) -> None:
            assert self.path == "/load"
            self.say(200, {"server_load": engine.load()})

        def do_POST(self) -> None:
            assert self.path == "/v1/completions"
            self.say(*engine.answer(self.question(), self.headers))

    return Handler


@pytest.fixture
def fake():
    return FakeEngine()


@pytest.fixture
def engine(fake):
    """The fake behind a live HTTP server, as ``drive`` expects it."""
    with behind_server(handler_of(fake), fake) as live:
        yield live


def wave(*firsts: int, tokens: int = 2, **changes: Any) -> PlannedWave:
    return PlannedWave(tuple(PlannedRequest((first, 9), tokens) for first in firsts), **changes)


def test_a_request_says_what_was_planned(engine, fake):
    request = PlannedRequest((65, 66), 3, rank=1)
    assert drive(engine, [PlannedWave((request,))]) == ((65, 65, 65),)
    assert fake.bodies == [
        {
            "model": "tiny",
            "prompt": [65, 66],
            "max_tokens": 3,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
    ]
    assert fake.headers[0]["X-data-parallel-rank"] == "1"


def test_answers_come_back_with_logarithms_of_what_was_and_was_nearly_chosen(engine, fake):
    """Ids, not texts: two ids may be one text. What lies far behind is not kept."""
    fake.logprobs = {
        "token_logprobs": [-0.5, -0.1234567],
        "top_logprobs": [
            {"token_id:65": -0.5, "token_id:7": -0.502, "token_id:8": -2.0},
            {"token_id:65": -0.1234567, "token_id:9": -3.0},
        ],
    }
    [answer] = drive_whole(engine, [PlannedWave((PlannedRequest((65, 66), 2),))])
    assert fake.bodies[0]["logprobs"] == 5
    assert fake.bodies[0]["return_tokens_as_token_ids"] is True
    assert answer == Completion("0ba8c30c", (65, 65), (-0.5, -0.12346), (CloseCall(0, 7, 0.002),))


@pytest.mark.parametrize(
    "told", [None, {}, {"token_logprobs": [-0.5], "top_logprobs": [{"token_id:65": -0.5}]}]
)
def test_an_engine_without_a_logarithm_for_each_token_has_tokens_alone(engine, fake, told):
    fake.logprobs = told
    [answer] = drive_whole(engine, [wave(65)])
    assert (answer.tokens, answer.logprobs, answer.close_calls) == ((65, 65), (), ())


def test_an_answer_is_short_only_where_something_ends_it(engine, fake):
    fake.ends_after = 2
    ended = PlannedRequest((65, 66), 3, sampling_params=SamplingParams(stop_token_ids=(65,)))
    assert drive(engine, [PlannedWave((ended,))]) == ((65, 65),)
    with pytest.raises(EngineError, match="expected an answer of 3 token ids, found 2"):
        drive(engine, [wave(65, tokens=3)])


def test_a_prompt_whose_logarithms_are_asked_for_comes_before_its_answer(engine, fake):
    """By the names that the engine gives its tokens, so that one put elsewhere is another token."""
    fake.logprobs = {
        "token_logprobs": [-0.5],
        "top_logprobs": [{"token_id:65": -0.5, "token_id:7": -0.502}],
    }
    fake.more["prompt_logprobs"] = [
        None,
        {"66": {"logprob": -1.5, "rank": 4}, "9": {"logprob": -0.1, "rank": 1}},
        {"68": {"logprob": -2.0, "rank": 5}},
    ]
    asked = SamplingParams(prompt_logprobs=1)
    request = PlannedRequest((65, 66, 67), 1, sampling_params=asked)
    [answer] = drive_whole(engine, [PlannedWave((request,))])
    assert fake.bodies[0]["prompt_logprobs"] == 1
    assert (answer.tokens, answer.logprobs) == ((66, 68, 65), (-1.5, -2.0, -0.5))
    assert answer.close_calls == (CloseCall(2, 7, 0.002),)
    assert request.echoed == 2


def test_logarithms_that_are_no_numbers_are_an_answer_without_tokens(engine):
    """What a state read from the wrong place gives; other requests are measured all the same."""
    broken, whole = drive_whole(engine, [wave(2, 65)])
    assert (broken.tokens, broken.logprobs) == ((), ())
    assert whole.tokens == (65, 65)
    assert drive(engine, [wave(2)]) == ((2, 2),)
    with pytest.raises(EngineError, match="no such prompt"):
        drive_whole(engine, [wave(0)])


def test_a_request_with_a_grammar_that_the_engine_gives_up_is_an_answer_without_tokens(engine):
    """vLLM ends it where it sees a token that the grammar refuses; others are no such answers."""
    grammar = StructuredOutputs(choice=("a", "b"))
    asked = SamplingParams(ignore_eos=False, structured_outputs=grammar)
    requests = tuple(PlannedRequest((one, 9), 2, sampling_params=asked) for one in (3, 65))
    assert drive(engine, [PlannedWave(requests)]) == ((), (65, 65))
    with pytest.raises(EngineError, match=r"refused .500.: .*Internal server error"):
        drive(engine, [wave(3)])


def test_without_a_rank_the_engine_chooses(engine, fake):
    drive(engine, [wave(5)])
    assert fake.headers[0]["X-data-parallel-rank"] is None


def test_together_reaches_a_held_engine_in_the_order_of_the_plan(engine, fake):
    said = drive(engine, [wave(*range(5, 25))])
    assert fake.diary == ["hold", *range(5, 25), "release", "drain"]
    assert said == tuple((first, first) for first in range(5, 25))


def test_a_wave_waits_for_the_one_before(engine, fake):
    drive(engine, [wave(5, 6), wave(7), wave(8, arrival="queue", max_concurrency=1)])
    assert fake.diary == [
        "hold", 5, 6, "release", "drain", "hold", 7, "release", "drain", 8, "drain",
    ]  # fmt: skip


def test_an_engine_that_cannot_be_held_gets_all_at_once(engine, fake):
    fake.together = threading.Barrier(3)
    engine.server.launch.engine.disaggregated = True
    assert drive(engine, [wave(5, 6, 7)]) == ((5, 5), (6, 6), (7, 7))
    assert fake.most_in_flight == 3
    assert sorted(fake.diary[:3]) == [5, 6, 7]
    assert fake.diary[3:] == ["drain"]


def test_a_queue_never_has_more_in_flight_than_it_may(engine, fake, monkeypatch):
    send = waves._Driver._send_in_time

    def all_sent(*given: Any) -> Any:
        """Nothing is answered before every sender there is has reached the engine."""
        sent = send(*given)
        senders = [one for one in threading.enumerate() if one.name.startswith("wave")]
        wait_until(lambda: fake.in_flight == len(senders), "a request of every sender")
        fake.may_answer.set()
        return sent

    monkeypatch.setattr(waves._Driver, "_send_in_time", all_sent)
    fake.may_answer.clear()
    queue = wave(*range(5, 35), arrival="queue", max_concurrency=3)
    assert drive(engine, [queue]) == tuple((first, first) for first in range(5, 35))
    assert fake.most_in_flight == 3
    assert sorted(fake.diary[:-1]) == list(range(5, 35))


class Clock:
    """Goes on with each sleep, and not before all that was sent has reached the engine."""

    def __init__(self, fake: FakeEngine) -> None:
        self.fake, self.now, self.sleeps = fake, 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.sleeps += 1
            wait_until(lambda: len(self.fake.bodies) >= self.sleeps, "what was sent so far")
        self.now += seconds


def test_poisson_requests_come_when_they_shall_whatever_became_of_others(engine, fake, monkeypatch):
    clock, came = Clock(fake), {}

    class Timed(list[Any]):
        def append(self, body: Any) -> None:
            came[body["prompt"][0]] = clock.now
            super().append(body)

    monkeypatch.setattr(waves, "time", clock)
    fake.bodies, fake.together = Timed(), threading.Barrier(3)
    requests = (
        PlannedRequest((5,), 1),
        PlannedRequest((6,), 1, delay_s=0.05),
        PlannedRequest((7,), 1, delay_s=0.15),
    )
    drive(engine, [PlannedWave(requests, "poisson")])
    assert came == {5: 0.0, 6: pytest.approx(0.05), 7: pytest.approx(0.15)}
    assert sorted(fake.diary[:-1]) == [5, 6, 7]
    assert fake.diary[-1] == "drain", "the last was waited for"
    assert fake.most_in_flight == 3, "none waited for another"


def test_a_turn_of_a_trace_comes_after_the_answer_before_it(engine, fake, monkeypatch):
    slept = list[float]()
    monkeypatch.setattr(waves, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=slept.append))
    requests = (
        PlannedRequest((5,), 1),
        PlannedRequest((6,), 1, delay_s=9.0),
        PlannedRequest((7,), 1, delay_s=0.25, after=0),
    )
    assert drive(engine, [PlannedWave(requests, "trace")]) == ((5,), (6,), (7,))
    assert fake.diary.index(5) < fake.diary.index(7)
    assert sorted(slept) == [0.0, 0.0, 0.25, 0.25, 9.0], "and 0.25 s after that answer"


def test_a_refused_request_is_an_error_and_the_engine_is_released(engine, fake):
    with pytest.raises(EngineError, match=r"refused \(400\): .*no such prompt") as caught:
        drive(engine, [wave(5, 0, 6)])
    assert caught.value.log_tail == "the log"
    assert fake.diary == ["hold", 5, 0, "release"]


def test_requests_that_never_arrive_are_an_error_and_the_engine_is_released(
    engine, fake, monkeypatch
):
    monkeypatch.setattr(waves, "ARRIVAL_TIMEOUT_S", 0.1)
    fake.deaf = True
    with pytest.raises(EngineError, match="expected 1 requests in the server after 0 s, found 0"):
        drive(engine, [wave(5, 6)])
    assert "release" in fake.diary


def test_after_an_error_the_rest_of_a_queue_is_not_sent(engine, fake, monkeypatch):
    class Senders(ThreadPoolExecutor):
        """The engine answers what was sent when the rest has been given up, or would have been."""

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            fake.may_answer.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr(waves, "ThreadPoolExecutor", Senders)
    fake.may_answer.clear()
    with pytest.raises(EngineError, match="refused"):
        drive(engine, [wave(0, *range(5, 50), arrival="queue", max_concurrency=2)])
    assert len(fake.bodies) < 10
    assert "drain" not in fake.diary


def test_an_answer_without_its_tokens_is_an_error(engine):
    with pytest.raises(EngineError, match="expected an answer of 2 token ids, found 0"):
        drive(engine, [wave(1)])


def test_a_mute_engine_is_an_error_in_time(engine, fake, monkeypatch):
    monkeypatch.setattr(waves, "REQUEST_TIMEOUT_S", 0.1)
    fake.may_answer.clear()
    engine.server.launch.engine.disaggregated = True  # else it is asked for its load, too
    try:
        with pytest.raises(EngineError, match=r"not answered: .*Timeout"):
            drive(engine, [wave(5)])
    finally:
        fake.may_answer.set()
