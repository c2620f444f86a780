"""How requests come and go at engine steps, watched from the server's end."""

import select
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from hybridwatch.errors import EngineError
from hybridwatch.measurement import waves
from hybridwatch.measurement.waves import drive, drive_whole
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from tests.unit.measurement.fake_engines import JsonHandler, behind_server


class SteppingEngine:
    """An engine that gives each of its requests one token a step, the prompt's first one.

    It keeps a diary: the prompt's first token when a request comes, "gone" with it when its client
    went away, and "steps" with how many were made.
    """

    def __init__(self) -> None:
        self.diary: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.deaf = False
        self._left: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        self._changed = threading.Condition()
        self._held = False

    # What the harness calls on the control channel.

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self.diary.append("release")
        self._held = False
        self.run_steps(1000)

    def run_steps(self, steps: int) -> int:
        made = 0
        with self._changed:
            while made < steps and any(self._left.values()):
                self._left = {key: max(0, left - 1) for key, left in self._left.items()}
                made += 1
            self._changed.notify_all()
            if self._held:
                self.diary.append(("steps", made))
        return made

    def requests(self) -> int:
        with self._changed:
            return sum(self._answers[first] for first, left in self._left.items() if left)

    def set_token_budget(self, tokens: int | None) -> None:
        self.diary.append(("budget", tokens))

    def drain(self) -> None:
        assert self.requests() == 0

    def await_transfers(self) -> None:
        pass

    # What it does with a request.

    def answer(self, body: dict[str, Any], connection: Any) -> list[int] | None:
        """Wait for the last token; nothing when the client went away before."""
        first = body["prompt"][0]
        with self._changed:
            self.bodies.append(body)
            if self.deaf:
                return [first] * body["max_tokens"]
            self.diary.append(first)
            self._answers[first] = body.get("n", 1)
            self._left[first] = body["max_tokens"]
            while self._left[first] > 0:
                if select.select([connection], [], [], 0)[0]:
                    self._left[first] = 0
                    self.diary.append(("gone", first))
                    return None
                self._changed.wait(0.01)
        return [first] * body["max_tokens"]


def handler_of(engine: SteppingEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler):
        def do_POST(self) -> None:
            body = self.question()
            ids = engine.answer(body, self.connection)
            choices = [{"token_ids": ids, "index": at} for at in range(body.get("n", 1))]
            self.say(200, {"choices": choices})

    return Handler


@pytest.fixture
def fake():
    return SteppingEngine()


@pytest.fixture
def engine(fake):
    """The fake behind a live HTTP server, as ``drive`` expects it."""
    with behind_server(handler_of(fake), fake) as live:
        yield live


def request(first: int, tokens: int, step: int = 0, **more: Any) -> PlannedRequest:
    return PlannedRequest((first, 9), tokens, at_step=step, **more)


def wave(*requests: PlannedRequest, **more: Any) -> PlannedWave:
    return PlannedWave(requests, "steps", **more)


def test_each_request_comes_before_its_step(engine, fake):
    said = drive(engine, [wave(request(5, 4), request(6, 4), request(7, 2, 3))])
    assert said == ((5,) * 4, (6,) * 4, (7,) * 2)
    assert fake.diary == [5, 6, ("steps", 3), 7, "release"]


def test_steps_decide_and_not_places_in_the_file(engine, fake):
    drive(engine, [wave(request(5, 4, 2), request(6, 4))])
    assert fake.diary == [6, ("steps", 2), 5, "release"]


def test_an_engine_that_ran_dry_gets_the_next_at_once(engine, fake):
    drive(engine, [wave(request(5, 2), request(6, 1, 50))])
    assert fake.diary == [5, ("steps", 2), 6, "release"]


def test_a_client_goes_away_before_its_step(engine, fake):
    gone = request(6, 9, abort_at_step=3)
    first, second, third = drive_whole(engine, [wave(request(5, 9), gone, request(7, 2, 3))])
    assert fake.diary == [5, 6, ("steps", 3), 7, ("gone", 6), "release"]
    assert (first.tokens, second.tokens, third.tokens) == ((5,) * 9, (), (7,) * 2)


def test_a_client_may_leave_before_it_was_ever_scheduled(engine, fake):
    drive(engine, [wave(request(5, 3), request(6, 3, 1, abort_at_step=1))])
    assert fake.diary == [5, ("steps", 1), 6, ("gone", 6), "release"]


def test_one_that_has_its_answer_aborts_nothing_and_is_not_compared_either(engine, fake):
    answered = request(6, 2, abort_at_step=4)
    _, other = drive(engine, [wave(request(5, 9), answered)])
    assert fake.diary == [5, 6, ("steps", 4), "release"]
    assert other == ()


def test_a_budget_holds_for_its_wave_alone(engine, fake):
    drive(engine, [wave(request(5, 1), token_budget=8), wave(request(6, 1))])
    assert fake.diary == [("budget", 8), 5, "release", ("budget", None), 6, "release"]


def test_sampled_requests_say_how_they_are_drawn(engine, fake):
    sampled = request(5, 2, temperature=0.5, sampling_seed=11, priority=-3)
    drive(engine, [wave(sampled)])
    (body,) = fake.bodies
    assert {key: body[key] for key in ("temperature", "seed", "priority")} == {
        "temperature": 0.5,
        "seed": 11,
        "priority": -3,
    }


def test_several_answers_come_back_one_behind_the_other(engine):
    twice = request(5, 2, temperature=0.5, sampling_seed=1, n=2)
    assert drive(engine, [wave(twice)]) == ((5, 5, 5, 5),)


def test_a_request_that_never_reaches_the_scheduler_is_an_error(engine, fake, monkeypatch):
    monkeypatch.setattr(waves, "ARRIVAL_TIMEOUT_S", 0.1)
    fake.deaf = True
    with pytest.raises(EngineError, match="expected 1 requests in the scheduler after 0 s, found"):
        drive(engine, [wave(request(5, 2))])
    assert fake.diary == ["release"]
