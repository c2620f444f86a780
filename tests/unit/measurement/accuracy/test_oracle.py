"""Right answers from outside the engine: how they are kept, and what differs from them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.right_answers import (
    Oracle,
    find_deviations,
    find_path,
    load,
    model_digest,
    wrong_among,
)
from hybridwatch.records.run import NEAR_TIE_FLOAT32, NEAR_TIE_HALF
from tests.builders import said

RIGHT = (said(1, 2, near={1: (9, 0.0006)}), said(3, prompt="a" * 8))
ORACLE = Oracle(
    schema_version=1,
    scenario="smoke/any",
    model="tiny",
    model_digest="0" * 64,
    made_by={"transformers": "5.23.0"},
    command="hybridwatch oracle make tiny smoke/any",
    seed=7,
    trials=(RIGHT, RIGHT[:1]),
)


def wrong(*answered, right=RIGHT, fresh=(True, True), bound=NEAR_TIE_FLOAT32):
    return wrong_among(answered, right, fresh, bound)


def keep(folder: Path, text: str) -> Path:
    path = find_path(folder, "smoke/any")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_right_answers_come_back_as_they_were_written(tmp_path) -> None:
    assert load(keep(tmp_path, ORACLE.render())) == ORACLE
    assert sum('"tokens"' in line for line in ORACLE.render().splitlines()) == 3


def test_scenario_without_right_answers_has_none(tmp_path) -> None:
    assert load(find_path(tmp_path, "smoke/other")) is None


def test_an_answer_without_tokens_is_wrong() -> None:
    assert wrong(said(), RIGHT[1]) == (True, False)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"model_digest": "x"}, "model_digest"),
        ({"trials": [[{"prompt": "0" * 8, "tokens": ["a"]}]]}, "trials.0.0.tokens.0"),
        ({"more": 1}, "more"),
    ],
)
def test_damaged_file_is_named_with_its_key(tmp_path, change, place) -> None:
    path = keep(tmp_path, json.dumps({**json.loads(ORACLE.render()), **change}))
    with pytest.raises(MeasurementError, match=f"{path}: {place}: "):
        load(path)


def test_right_answers_are_not_wrong() -> None:
    assert wrong(*RIGHT) == (False, False)


@pytest.mark.parametrize("tokens", [(1,), (1, 2, 2)])
def test_an_answer_that_ends_elsewhere_is_wrong(tokens) -> None:
    assert wrong(said(*tokens), RIGHT[1]) == (True, False)


def test_other_token_is_wrong() -> None:
    assert wrong(said(1, 7), RIGHT[1]) == (True, False)


@pytest.mark.parametrize(("gap", "is_wrong"), [(0.0009, False), (0.0011, True)])
def test_near_tie_of_the_oracle_is_not_wrong(gap, is_wrong) -> None:
    right = (said(1, 2, near={1: (9, gap)}),)
    assert wrong(said(1, 9), right=right, fresh=(True,)) == (is_wrong,)


@pytest.mark.parametrize(("found", "is_wrong"), [(-0.5009, False), (-0.5011, True)])
def test_right_tokens_of_another_probability_are_wrong(found, is_wrong) -> None:
    right = (said(1, 2, logprobs=(-0.5, -0.5)),)
    answered = said(1, 2, logprobs=(-0.5, found))
    assert wrong(answered, right=right, fresh=(True,)) == (is_wrong,)


def test_after_a_near_tie_probabilities_are_of_another_text() -> None:
    right = (said(1, 2, 3, logprobs=(-0.5, -0.5, -0.5), near={1: (9, 0.0006)}),)
    answered = said(1, 9, 8, logprobs=(-0.5, -0.6, -5.0))
    assert wrong(answered, right=right, fresh=(True,)) == (False,)


def test_half_precision_has_a_wider_bound() -> None:
    right = (said(1, 2, near={1: (9, 0.2)}),)
    assert wrong(said(1, 9), right=right, fresh=(True,)) == (True,)
    assert wrong(said(1, 9), right=right, fresh=(True,), bound=NEAR_TIE_HALF) == (False,)


def test_turn_that_follows_another_answer_is_not_called_wrong_a_second_time() -> None:
    answered = said(1, 7), said(4, prompt="b" * 8)
    assert wrong(*answered, fresh=(True, False)) == (True, False)


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param((said(1, 2, prompt="b" * 8), RIGHT[1]), id="another prompt"),
        pytest.param(RIGHT[:1], id="fewer requests"),
    ],
)
def test_oracle_of_another_workload_says_nothing(answered) -> None:
    assert wrong_among(answered, RIGHT, [True] * len(answered), NEAR_TIE_FLOAT32) is None


def test_fresh_answers_that_are_the_same_deviate_in_nothing() -> None:
    rounded = replace(RIGHT[0], logprobs=(-0.5004, -0.4996))
    tied = said(1, 9, near={1: (2, 0.0004)})
    for fresh in (rounded, tied):
        assert list(find_deviations([RIGHT], [[fresh, RIGHT[1]]])) == []


@pytest.mark.parametrize(
    ("fresh", "line"),
    [
        (said(1, 7), "trial 0: request 0: token 1: expected 2, found 7, which is far behind"),
        (
            said(1, 2, prompt="c" * 8),
            "trial 0: request 0: prompt: expected 00000000, found cccccccc",
        ),
        (
            said(1, 2, logprobs=(-0.5, -0.502)),
            "trial 0: request 0: token 1: expected logprob -0.5, found -0.502",
        ),
        (said(1, 2, 3), "trial 0: request 0: expected 2 tokens, found 3"),
    ],
)
def test_fresh_answer_that_differs_is_named(fresh, line) -> None:
    [found] = find_deviations([RIGHT], [[fresh, RIGHT[1]]])
    assert found.startswith(line)


def test_model_is_reported_by_configuration_and_weights(tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = model_digest(tmp_path)
    (tmp_path / "README.md").write_text("no part of it")
    assert model_digest(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert model_digest(tmp_path) != first
