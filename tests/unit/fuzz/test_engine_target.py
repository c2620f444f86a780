"""A live engine that cases are played on: given up once a case has left it unlike a fresh one."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hybridwatch.errors import EngineError
from hybridwatch_lab.fuzz.case import FuzzCase
from hybridwatch_lab.fuzz.engine_target import EngineTarget, Played

LEAKED = Played(counters={"blocks_leaked": 3})


@pytest.fixture
def target(monkeypatch):
    """A target whose engine has lost so many blocks, with a list of the engines that it took."""
    engines: list[int] = []

    def made(played: Any, lost: int) -> tuple[EngineTarget, list[int]]:
        def play(*_: object) -> Played:
            if isinstance(played, Exception):
                raise played
            return cast("Played", played)

        control = SimpleNamespace(count_lost=lambda: lost)
        monkeypatch.setattr(EngineTarget, "_engine", lambda _: SimpleNamespace(control=control))
        monkeypatch.setattr(EngineTarget, "_play", play)
        monkeypatch.setattr(EngineTarget, "open_anew", lambda _: engines.append(len(engines)))
        nothing = cast("Any", None)
        return EngineTarget(nothing, nothing, Path(), Path(), lambda _: None), engines

    return made


@pytest.mark.parametrize(
    ("played", "lost", "replaced"),
    [
        (Played(), 0, 0),
        (LEAKED, 3, 1),
        (EngineError("gone"), 0, 1),
    ],
)
def test_an_engine_that_is_not_as_it_was_is_replaced(target, played, lost, replaced):
    made, engines = target(played, lost)
    found = made.play(FuzzCase(()))
    assert len(engines) == replaced
    assert found.counters == getattr(played, "counters", {})
    assert bool(found.trouble) is isinstance(played, EngineError)
