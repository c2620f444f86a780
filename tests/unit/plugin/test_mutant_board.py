"""Mutants in a process: one at a time, counted from zero, and out without a trace."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine.mutants.board import MutantBoard, MutantHeader
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.scheduler_side import _answered_here_too
from hybridwatch_engine_lab.mutants import cost

from hybridwatch_lab.in_engine import MUTANTS


def a_header(name: str = "one", **changes: Any) -> MutantHeader:
    keys: dict[str, Any] = {
        "name": name,
        "file": f"first.toml: mutant.{name}",
        "folder": MUTANTS,
        "half": "first",
        "mechanism": "speed",
        "target": ("fine:Rows.move",),
        "by": "cost.twice",
        "resembles": "made up",
        "what": "Moves twice.",
    }
    return MutantHeader(**{**keys, **changes})


@pytest.fixture
def rows(monkeypatch):
    """A package vllm with one class, whose rows count their moves."""

    class Rows:
        moves = 0

        def move(self) -> int:
            self.moves += 1
            return self.moves

    package, module = ModuleType("vllm"), ModuleType("vllm.fine")
    vars(package)["__path__"] = []
    vars(module)["Rows"] = Rows
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.fine", module)
    return Rows


def a_board(*headers: MutantHeader) -> MutantBoard:
    return MutantBoard({header.name: header for header in headers}, "worker")


def test_a_mutant_acts_while_it_is_on_and_is_out_after(rows):
    original, board = rows.move, a_board(a_header())
    assert board.switch("one") == {"mutant": "one"}
    assert rows().move() == 2
    assert board.counts() == {"reached": 1, "changed": 1}
    assert board.switch(None) == {"mutant": None}
    assert rows.move is original
    assert board.counts() == {"reached": 0, "changed": 0}


def test_another_mutant_takes_the_place_of_the_first(rows):
    slower = a_header("two", by="cost.slower", parameters={"share": 0.0})
    board = a_board(a_header(), slower)
    board.switch("one")
    board.switch("two")
    assert rows().move() == 1
    assert board.counts() == {"reached": 1, "changed": 1}
    board.switch(None)


@pytest.mark.parametrize("target", ["fine:Rows.gone", "fine:Gone.move", "gone:Rows.move"])
def test_a_target_that_this_release_lacks_is_refused_and_nothing_is_on(rows, target):
    original, board = rows.move, a_board(a_header(target=(target,)))
    error = board.switch("one")["error"]
    assert error.startswith(
        f"first.toml: mutant.one.target: expected a function of this vLLM, found {target}"
    )
    assert rows.move is original


def test_an_unknown_mutant_is_refused_with_the_known_ones(rows):
    assert a_board(a_header()).switch("wat") == {
        "error": "no mutant 'wat' to switch on; known: one"
    }


def test_a_mutant_of_the_scheduler_does_nothing_in_a_worker(rows):
    original, board = rows.move, a_board(a_header(process="scheduler"))
    assert board.switch("one") == {"mutant": "one"}
    assert rows.move is original


def test_the_scheduler_answers_as_one_more_worker():
    call = _answered_here_too(lambda *_: [{"mutant": None}])
    assert len(call(SimpleNamespace(), "hybridwatch_mutate", args=(None,))) == 2
    assert call(SimpleNamespace(), "hybridwatch_identity") == [{"mutant": None}]


def test_a_wrapper_hands_out_what_the_original_gives():
    tally = Tally()
    assert cost.slower(lambda: 7, tally, share=0.0)() == 7
    assert tally.reached == 1
