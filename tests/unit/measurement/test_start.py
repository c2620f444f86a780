"""What a trial says of the start of its engine, and of the first request that it serves."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.measurement.memory import samples_of_start, time_first_request
from hybridwatch.metrics import FIRST_REQUEST_TIME, START_TIME
from tests.unit.measurement.fake_engines import JsonHandler, behind_server
from tests.unit.measurement.test_memory import OF_LOAD, SCENARIO


class Asked(JsonHandler):
    """Answers every request, and remembers them."""

    status = 200
    bodies: list[Any]

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.body()))
        self.say(self.status, {"choices": []})


@pytest.fixture
def handler() -> type[Asked]:
    return type("Handler", (Asked,), {"bodies": []})


def a_trial(engine: Any, **fields: Any) -> Any:
    """Of an engine that has just come up; ``settled`` counts how often it was reset."""
    engine.settled = []
    engine.settle, engine.setting = engine.settled.append, "setting"
    engine.start, engine.is_fresh = {START_TIME: 18.0}, True
    wanted = {"engine": engine, "scenario": SCENARIO, "number": 0, "is_warmup": False}
    return SimpleNamespace(**{**wanted, **fields})


def test_the_first_request_is_timed_and_the_engine_is_then_as_if_it_had_served_nothing(handler):
    with behind_server(handler, None) as engine:
        trial = a_trial(engine)
        time_first_request(trial)
    [body] = handler.bodies
    assert len(body["prompt"]) == OF_LOAD
    assert body["max_tokens"] == 2
    assert engine.start[FIRST_REQUEST_TIME] > 0
    assert engine.settled == ["setting"]


@pytest.mark.parametrize("known", [{"is_fresh": False}, {"start": {}}])
def test_nothing_is_asked_of_an_engine_that_has_served_or_whose_start_is_not_known(handler, known):
    with behind_server(handler, None) as engine:
        trial = a_trial(engine)
        vars(engine).update(known)
        time_first_request(trial)
    assert (handler.bodies, engine.settled) == ([], [])


def test_a_first_request_that_fails_leaves_no_value_and_the_load_to_say_why(handler):
    handler.status = 500
    with behind_server(handler, None) as engine:
        time_first_request(a_trial(engine))
    assert engine.start == {START_TIME: 18.0}


def test_a_start_is_told_once_and_by_a_trial_that_counts():
    engine = SimpleNamespace()
    warm, first, second = (a_trial(engine, is_warmup=one) for one in (True, False, False))
    assert samples_of_start(warm) == ()
    [sample] = samples_of_start(first)
    assert (sample.metric, sample.values) == (START_TIME, (18.0,))
    assert samples_of_start(second) == ()
