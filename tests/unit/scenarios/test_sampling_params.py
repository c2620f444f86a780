"""What requests ask of their answers besides length and temperature."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.measurement.completions import build_body
from hybridwatch.scenarios.expansion import PlannedRequest, expand
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.sampling import SamplingParams
from tests.mistakes import read_mistakes
from tests.unit.scenarios import example
from tests.unit.scenarios.example import GOOD, WAVE

PLAIN = "[[workload.waves]]\nrequests = 3\ninput_tokens = 40\noutput_tokens = 8\n"
DRAWN = "temperature = 1.0\nsampling_seed = 3\n"


def load(tmp_path: Path, keys: str, then: str = ""):
    return example.load(tmp_path, GOOD.replace(WAVE, f"{PLAIN}{keys}\n{then}\n"))


def asked(tmp_path: Path, keys: str, then: str = "") -> list[PlannedRequest]:
    waves = expand(load(tmp_path, keys, then).workload.waves, 5)
    return [request for wave in waves for request in wave.requests]


def params(**keys) -> PlannedRequest:
    return PlannedRequest((5, 6, 7), 8, sampling_params=SamplingParams(**keys))


def test_they_are_taken_in_turn_and_asked_again(tmp_path):
    again = "[[workload.waves]]\nagain = true"
    rows = asked(tmp_path, "sampling_params = [{ presence_penalty = 1.5 }, {}]", again)
    assert [row.sampling_params.presence_penalty for row in rows] == 2 * [1.5, 0.0, 1.5]


def test_a_request_is_sent_what_it_says_and_nothing_else(tmp_path):
    keys = 'sampling_params = [{ stop = ["a"], ignore_eos = false, logit_bias = { 9 = 2.5 } }, {}]'
    one, other, _ = (build_body(row, "m", {}) for row in asked(tmp_path, keys))
    assert list(one["stop"]) == ["a"]
    assert {key: one[key] for key in one.keys() - other.keys()} == {
        "stop": ("a",),
        "logit_bias": {"9": 2.5},
    }
    assert (one["ignore_eos"], other["ignore_eos"]) == (False, True)


GRAMMARS = ['regex = "a+"', 'json = { type = "object" }', 'choice = ["a", "b"]']


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_grammar_is_sent_in_the_words_of_the_file(tmp_path, grammar):
    keys = f"sampling_params = [{{ ignore_eos = false, structured_outputs = {{ {grammar} }} }}]"
    body = build_body(asked(tmp_path, keys)[0], "m", {})
    sent = json.loads(json.dumps(body["structured_outputs"]))
    assert sent == tomllib.loads(grammar)
    assert body["ignore_eos"] is False


def test_grammars_are_a_part_of_the_digest(tmp_path):
    keys = "sampling_params = [{{ ignore_eos = false, structured_outputs = {{ {} }} }}]"
    assert len({digest(load(tmp_path, keys.format(one))) for one in GRAMMARS}) == len(GRAMMARS)


def test_defaults_leave_the_digest_as_it_was(tmp_path):
    plain = digest(load(tmp_path, ""))
    assert digest(load(tmp_path, "sampling_params = []")) == plain
    assert digest(load(tmp_path, "sampling_params = [{ stop_token_ids = [9] }]")) != plain


def test_what_leaves_one_token_has_a_right_answer_at_any_temperature(tmp_path):
    keys = "[{ top_k = 1 }, { top_p = 1e-6 }, { min_p = 1.0 }]"
    rows = asked(tmp_path, f"{DRAWN}sampling_params = {keys}")
    assert [row.has_right_answer for row in rows] == [True, True, True]
    more = asked(tmp_path, f"{DRAWN}sampling_params = [{{ top_k = 2 }}, {{}}]")
    assert [row.has_right_answer for row in more] == [False, False, False]
    assert not replace(rows[0], n=2).has_right_answer


@pytest.mark.parametrize(
    ("keys", "shortest"),
    [
        ({}, 8),
        ({"logit_bias": {"9": 1.0}}, 8),
        ({"stop": ["a"]}, 1),
        ({"stop_token_ids": [9]}, 1),
        ({"ignore_eos": False, "min_tokens": 3}, 1),
        ({"ignore_eos": False, "structured_outputs": {"regex": "a"}}, 1),
    ],
)
def test_only_what_can_be_ended_may_be_short(keys, shortest):
    lengths = [tokens for tokens in range(12) if params(**keys).can_have(tokens)]
    assert lengths == list(range(shortest, 9))


@pytest.mark.parametrize(("value", "line"), read_mistakes("sampling"))
def test_each_mistake_is_named_with_its_key(tmp_path, value, line):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, f"sampling_params = {value}")
    assert str(caught.value) == f"scenarios/x.toml: workload.waves[0].sampling_params{line}"


def test_several_answers_of_a_grammar_are_not_told_apart(tmp_path):
    grammar = '{ ignore_eos = false, structured_outputs = { regex = "a" } }'
    with pytest.raises(ScenarioError, match="n: expected 1 in a wave with structured_outputs"):
        load(tmp_path, f"{DRAWN}n = 2\nsampling_params = [{grammar}]")


def test_logarithms_of_a_prompt_and_another_turn_do_not_go_together(tmp_path):
    keys = "sampling_params = [{ prompt_logprobs = 0 }]"
    turn = f"{PLAIN}continues = true\n"
    with pytest.raises(ScenarioError, match="without temperature, aborts, prompt_logprobs"):
        load(tmp_path, keys, turn)
    with pytest.raises(ScenarioError, match="no prompt_logprobs in a wave that continues"):
        load(tmp_path, "", f"{turn}{keys}")
