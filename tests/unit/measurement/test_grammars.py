"""Which answers are held against grammars, and how many leave theirs."""

from typing import Any

import pytest

from hybridwatch.engines.control import EngineControl
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.right_answers import count_grammar_breaks
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from hybridwatch.scenarios.sampling import SamplingParams, StructuredOutputs
from tests.builders import said

PLAIN = PlannedRequest((1, 2, 3), 4)
GRAMMAR = SamplingParams(ignore_eos=False, structured_outputs=StructuredOutputs(regex="a+"))
ASKED = PlannedRequest((1, 2, 3), 4, sampling_params=GRAMMAR)
ECHOED = PlannedRequest(
    (1, 2, 3), 4, sampling_params=GRAMMAR.model_copy(update={"prompt_logprobs": 0})
)
GONE = PlannedRequest((1, 2, 3), 4, sampling_params=GRAMMAR, abort_at_step=2)


class Engine(EngineControl):
    """An engine whose grammar is: only token 7."""

    def __init__(self) -> None:
        super().__init__([])
        self.refusal = ""
        self.asked: list[Any] = []

    def _call(self, method: str, *arguments: Any) -> list[dict[str, Any]]:
        assert method == "grammar_breaks"
        if self.refusal:
            return [{"error": self.refusal}]
        [self.asked] = arguments
        return [{"breaks": [None if tokens == (7,) else 0 for _, tokens, _ in self.asked]}]


def count(requests, tokens):
    control = Engine()
    found = count_grammar_breaks(
        control, [PlannedWave(tuple(requests))], [said(*one) for one in tokens]
    )
    return found, control.asked


def test_only_requests_with_a_grammar_are_asked_about():
    found, asked = count([PLAIN, ASKED, PLAIN], [(5,), (7,), (5,)])
    assert found == 0
    assert asked == [({"regex": "a+"}, (7,), 4)]


def test_answers_that_break_it_and_those_that_the_engine_gave_up_are_counted():
    assert count([ASKED, ASKED, ASKED], [(7,), (7, 8), ()])[0] == 2


def test_tokens_of_a_prompt_are_no_part_of_its_answer():
    assert count([ECHOED], [(2, 3, 7)])[0] == 0
    assert count([ECHOED], [(2, 7, 3)])[0] == 1


def test_a_client_that_went_away_has_no_answer():
    assert count([ASKED, GONE], [(7,), ()])[0] == 0


def test_without_a_grammar_nothing_is_counted():
    assert count([PLAIN, GONE], [(5,), ()]) == (None, [])


def test_an_engine_that_cannot_read_them_fails_the_trial():
    control = Engine()
    control.refusal = "KeyError: 'tokenizer'"
    with pytest.raises(MeasurementError, match="does not read grammars: KeyError"):
        control.find_grammar_breaks([])
