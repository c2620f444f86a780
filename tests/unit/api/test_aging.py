"""A value is made once as long as it is young, whoever asks, and again when it is old."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from hybridwatch.api.view import Aging
from tests.waiting import LIMIT_S

FOR_EVER = math.inf


def test_it_is_made_once_however_many_ask_at_a_time() -> None:
    made, begun = count(1), threading.Barrier(8)
    value = Aging[int](lambda _: next(made), FOR_EVER)

    def ask(_: int) -> int:
        begun.wait()
        return value.get()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {1}


def test_an_old_one_is_made_of_the_one_before(monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.api.view._MOST_SHARE", math.inf)
    value = Aging[list[str]](lambda before: [*(before or []), "more"], 0.0)
    assert value.get() == ["more"]
    assert value.at_hand() is None
    assert value.get() == ["more", "more"]


def test_one_that_takes_long_is_made_seldom(monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("hybridwatch.api.view.time.monotonic", lambda: clock[0])

    def make(_: object) -> str:
        clock[0] += 5
        return "made"

    value = Aging[str](make, 2.0)
    assert value.get() == "made"
    clock[0] = 5 + 50 - 1
    assert value.at_hand() == "made"
    clock[0] = 5 + 50 + 1
    assert value.at_hand() is None


class Held:
    """Makes numbers; while it is held, whoever makes one waits."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.go_on, self.begun = threading.Event(), threading.Event()
        self.numbers = count(1)

    def make(self, before: int | None) -> int:
        if before is not None:
            self.begun.set()
            assert self.go_on.wait(LIMIT_S)
        return next(self.numbers)


@pytest.fixture
def held(monkeypatch) -> Held:
    made = Held()
    monkeypatch.setattr("hybridwatch.api.view.time.monotonic", lambda: made.clock)
    return made


def test_who_asks_while_it_is_made_again_gets_the_one_before(held) -> None:
    value = Aging[int](held.make, 2.0)
    assert value.get() == 1
    held.clock = 3.0
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(value.get)
        assert held.begun.wait(LIMIT_S)
        assert value.get() == 1
        held.go_on.set()
        assert making.result() == 2
    assert value.get() == 2


@pytest.mark.parametrize("forgotten", [True, False])
def test_one_that_was_forgotten_or_is_much_too_old_is_waited_for(held, forgotten) -> None:
    value = Aging[int](held.make, 2.0)
    assert value.get() == 1
    held.clock = 3.0 if forgotten else 5.0
    if forgotten:
        value.forget()
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(value.get)
        assert held.begun.wait(LIMIT_S)
        waiting = pool.submit(value.get)
        assert not waiting.done()
        held.go_on.set()
        assert (making.result(), waiting.result()) == (2, 2)


def test_a_forgotten_one_is_made_again() -> None:
    made = count(1)
    value = Aging[int](lambda _: next(made), FOR_EVER)
    assert (value.get(), value.get()) == (1, 1)
    value.forget()
    assert value.get() == 2


def test_one_that_is_forgotten_while_it_is_made_is_made_again() -> None:
    made = count(1)

    def make(_: int | None) -> int:
        number = next(made)
        if number == 1:
            value.forget()  # somebody wrote meanwhile
        return number

    value = Aging[int](make, FOR_EVER)
    assert value.get() == 1
    assert (value.get(), value.get()) == (2, 2)


def test_one_that_cannot_be_made_is_tried_again() -> None:
    tries = count()
    value = Aging[float](lambda _: 1 / next(tries), FOR_EVER)
    with pytest.raises(ZeroDivisionError):
        value.get()
    assert value.get() == 1.0
