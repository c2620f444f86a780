"""Answers of a trial held against the oracle of its scenario, where there is one."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.measurement.completions import prompt_digest
from hybridwatch.measurement.right_answers import checked, find_path, list_trials, load
from hybridwatch.metrics import WRONG_ANSWERS
from hybridwatch.records.run import NEAR_TIE_FLOAT32, Sample
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home

ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "smoke" / "padded-graph-rows.toml", ROOT)
WITH_ORACLES = sorted(
    path.relative_to(home() / "oracles").with_suffix("").as_posix()
    for path in (home() / "oracles").rglob("*.json")
)

CHANGE_LOGITS = {"logit_bias", "repetition_penalty", "presence_penalty", "frequency_penalty"}


def kept(trial: int):
    oracle = load(find_path(home(), SCENARIO.id))
    assert oracle is not None
    return oracle.trials[trial]


def check(answered, number: int = 0, folder: Path | None = None):
    waves = list_trials(SCENARIO, number + 1)[number]
    return checked(folder or home(), SCENARIO, number, waves, tuple(answered))


def test_right_answers_count_0() -> None:
    found = check(kept(0))
    assert found.samples == (Sample(WRONG_ANSWERS, (0.0,)),)
    assert not any(one.is_wrong for one in found.answered)


def test_wrong_answers_are_counted_and_marked() -> None:
    answered = list(kept(0))
    answered[3] = replace(answered[3], tokens=(0,) * len(answered[3].tokens), is_wrong=False)
    found = check(answered)
    assert found.samples == (Sample(WRONG_ANSWERS, (1.0,)),)
    assert [at for at, one in enumerate(found.answered) if one.is_wrong] == [3]


def test_mark_of_the_engine_itself_stays() -> None:
    answered = [replace(kept(0)[0], is_wrong=True), *kept(0)[1:]]
    assert check(answered).answered[0].is_wrong


def test_a_scenario_can_widen_what_is_rounding() -> None:
    """Of 0.006 and 0.06 nats off, the wider bound excuses the first alone."""
    expect = SCENARIO.expect.model_copy(update={"oracle_within": 0.02})
    wider = SCENARIO.model_copy(update={"expect": expect})
    answered = list(kept(0))
    for at, off in ((0, 0.006), (1, 0.06)):
        moved = tuple(value - off for value in answered[at].logprobs)
        answered[at] = replace(answered[at], logprobs=moved)
    waves = list_trials(SCENARIO, 1)[0]
    for scenario, count in ((SCENARIO, 2), (wider, 1)):
        found = checked(home(), scenario, 0, waves, tuple(answered))
        assert found.samples == (Sample(WRONG_ANSWERS, (float(count),)),)


def test_without_an_oracle_nothing_is_counted(tmp_path) -> None:
    answered = kept(0)
    assert check(answered, folder=tmp_path) == (answered, (), {})


def test_trial_beyond_the_oracle_is_not_counted() -> None:
    oracle = load(find_path(home(), SCENARIO.id))
    assert oracle is not None
    assert check(kept(0), number=len(oracle.trials)).samples == ()


def other_prompts():
    return check([replace(one, prompt="0" * 8) for one in kept(0)])


def longer_answers():
    (waves,) = list_trials(SCENARIO, 1)
    longer = [
        replace(
            wave, requests=tuple(replace(r, max_tokens=r.max_tokens + 1) for r in wave.requests)
        )
        for wave in waves
    ]
    return checked(home(), SCENARIO, 0, longer, kept(0))


@pytest.mark.parametrize("ask", [other_prompts, longer_answers])
def test_oracle_of_other_requests_is_no_silence(ask) -> None:
    """A scenario was changed and its oracle was not."""
    found = ask()
    assert found.samples == ()
    assert (
        "hybridwatch oracle make tiny-hybrid smoke/padded-graph-rows"
        in (found.unsupported[WRONG_ANSWERS])
    )


@pytest.mark.parametrize("name", ["aborts", "sampled-seeds"])
def test_answers_that_no_oracle_knows_are_passed_over(name) -> None:
    """Sampled ones, and those whose client went away."""
    scenario = load_scenario(ROOT / "curated" / f"{name}.toml", ROOT)
    oracle = load(find_path(home(), scenario.id))
    assert oracle is not None
    (waves,) = list_trials(scenario, 1)
    right = oracle.trials[0]
    unknown = [at for at, one in enumerate(right) if not one.tokens]
    assert unknown
    answered = tuple(one if one.tokens else replace(one, tokens=(7, 7)) for one in right)
    found = checked(home(), scenario, 0, waves, answered)
    assert found.samples == (Sample(WRONG_ANSWERS, (0.0,)),)
    assert not any(one.is_wrong for one in found.answered)


@pytest.mark.parametrize("name", WITH_ORACLES)
def test_every_oracle_answers_what_its_scenario_asks(name) -> None:
    scenario = load_scenario(ROOT / f"{name}.toml", ROOT)
    oracle = load(find_path(home(), name))
    assert oracle is not None
    assert len(oracle.trials) >= scenario.trials.contract
    for waves, trial in zip(list_trials(scenario, len(oracle.trials)), oracle.trials, strict=True):
        asked = [(wave.continues, one) for wave in waves for one in wave.requests]
        assert len(asked) == len(trial)
        for (follows, request), right in zip(asked, trial, strict=True):
            if request.has_right_answer:
                assert request.can_have(len(right.tokens) - request.echoed)
            else:
                assert not right.tokens
            assert follows or right.prompt == prompt_digest(request.prompt)


@pytest.mark.parametrize("name", ["smoke/answer-ends", "smoke/answer-choices"])
def test_no_rounding_decides_what_is_chosen_in_spite_of_the_logits(name) -> None:
    """An engine tells logarithms without bias and penalties: it excuses no near tie with them."""
    scenario = load_scenario(ROOT / f"{name}.toml", ROOT)
    oracle = load(find_path(home(), scenario.id))
    assert oracle is not None
    for waves, trial in zip(list_trials(scenario, len(oracle.trials)), oracle.trials, strict=True):
        requests = [request for wave in waves for request in wave.requests]
        for request, right in zip(requests, trial, strict=True):
            asked = request.sampling_params.as_written().keys()
            if asked & CHANGE_LOGITS:
                assert not [one for one in right.close_calls if one.gap <= NEAR_TIE_FLOAT32]
