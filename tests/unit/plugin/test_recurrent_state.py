"""A step that stores no state is counted in that step, whether or not anything reads it again."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hybridwatch_engine.probes import recurrent_state
from hybridwatch_engine.probes.recurrent_state import RecurrentStateProbe
from hybridwatch_engine.probes.state_slots import Content, SlotPlace

ROWS = 6


class Slots:
    """Two layers whose rows have a slot each; each keeps a convolution's inputs and a state."""

    key = "a"
    by_block = False
    decodes = ROWS
    builder = SimpleNamespace(use_spec_decode=False)

    def __init__(self) -> None:
        self.layers = [(np.zeros((ROWS, 3)), np.zeros((ROWS, 4))) for _ in range(2)]

    def slots_short(self) -> int:
        return 0

    def read(self, row: int) -> SlotPlace:
        return SlotPlace(row, row, 0)

    def written(self, row: int, _token: int) -> SlotPlace:
        return SlotPlace(row, row, 0)

    def content(self, place: SlotPlace) -> Content:
        return tuple(tuple(part[place.state].copy() for part in layer) for layer in self.layers)

    def parts(self, name: str) -> Iterator[np.ndarray]:
        """The inputs or the states of the layers, first layer first."""
        return (layer[name == "state"] for layer in self.layers)


@pytest.fixture
def counted(monkeypatch):
    """Broken states of one step, in which all is stored but what ``lose`` puts back."""
    monkeypatch.setattr(recurrent_state, "require_known_builders", lambda _: None)

    def step(lose):
        probe = RecurrentStateProbe()
        slots: Any = Slots()
        probe._groups, probe._requests = [slots], [f"request {row}" for row in range(ROWS)]
        probe._compare()
        for part in (*slots.parts("inputs"), *slots.parts("state")):
            part += 1
        lose(slots)
        probe._leave([1] * ROWS)
        return probe._counts.states_off

    return step


def put_back(parts: Iterable[np.ndarray], row: int) -> None:
    for part in parts:
        part[row] -= 1


def test_a_step_that_stores_every_state_breaks_nothing(counted):
    assert counted(lambda _: None) == 0


@pytest.mark.parametrize("layer", [0, 1])
def test_the_last_row_of_six_that_is_not_stored_in_one_layer_is_counted(counted, layer):
    assert counted(lambda slots: put_back([list(slots.parts("state"))[layer]], 5)) == 1


def test_a_row_without_any_new_input_of_a_convolution_is_counted(counted):
    assert counted(lambda slots: put_back(slots.parts("inputs"), 2)) == 1


def test_inputs_of_a_first_layer_that_repeat_with_the_token_are_no_fault(counted):
    assert counted(lambda slots: put_back([next(slots.parts("inputs"))], 2)) == 0
