"""The tables of a sweep, of speculation and the keys of ReplaySSM, and what contradicts in them."""

import pytest

from hybridwatch.engines.builds import FAULTS
from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, find
from hybridwatch.system.home import home
from tests.mistakes import read_mistakes
from tests.refusals import refusal
from tests.unit.scenarios.example import GOOD, load

RISING = "max_concurrency = [1, 2, 3]"


def with_sweep(text):
    return GOOD.replace("[trials]", f"[sweep]\n{text}\n\n[trials]", 1)


@pytest.mark.parametrize(("text", "says"), read_mistakes("sweep"))
def test_a_sweep_that_cannot_be_one_is_refused(tmp_path, text, says):
    assert says in refusal(ScenarioError, load, tmp_path, with_sweep(text))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("output_tokens = 48\nmax", "output_tokens = 1\nmax", "expected at least 2 with a sweep"),
        ("seed = 7", "seed = 7\nrequest_rate = 2.0", "request_rate: expected none with a sweep"),
    ],
)
def test_a_load_that_a_sweep_cannot_vary_is_refused(tmp_path, old, new, says):
    text = with_sweep(RISING)
    assert old in text
    with pytest.raises(ScenarioError, match=says):
        load(tmp_path, text.replace(old, new, 1))


def test_each_point_is_the_load_with_another_number(tmp_path):
    scenario = load(tmp_path, with_sweep("request_rate = [0.5, 1, 8]\n[sweep.slo]\nttft_ms = 200"))
    swept, base = scenario.sweep, scenario.workload.generation
    assert swept is not None
    assert swept.slo is not None
    assert swept.loads == (0.5, 1.0, 8.0)
    found = [swept.at(one, base) for one in swept.loads]
    assert [one.request_rate for one in found] == [0.5, 1.0, 8.0]
    assert {one.model_copy(update={"request_rate": None}) for one in found} == {base}
    assert swept.slo.bounds == {"ttft": 0.2}


def test_loads_and_objective_are_what_is_asked_and_the_fault_is_not(tmp_path):
    plain = digest(load(tmp_path, with_sweep(RISING)))
    assert digest(load(tmp_path, with_sweep(f'{RISING}\nknown_bad = "slow-step"'))) == plain
    assert digest(load(tmp_path, with_sweep(f"{RISING}\n[sweep.slo]\nttft_ms = 1"))) != plain
    assert digest(load(tmp_path, GOOD)) != plain


def test_every_shipped_sweep_names_a_fault_that_a_label_can_plant():
    swept = [scenario for scenario in find(home() / "scenarios", []) if scenario.sweep]
    assert swept
    assert {scenario.slow_control for scenario in swept} <= set(FAULTS)


HEAD = 'method = "eagle"\nmodel = "a-head"\ndrafts = 3\n'
NGRAM = 'method = "ngram"\ndrafts = 3\n'
OWN = 'method = "mtp"\ndrafts = 3\n'


def speculating(text):
    return GOOD.replace("[workload]", f"[engine.speculation]\n{text}\n[workload]", 1)


@pytest.mark.parametrize("text", [NGRAM, NGRAM + "lookup_min = 2\nlookup_max = 2\n", OWN, HEAD])
def test_speculation_that_makes_sense_is_taken(tmp_path, text):
    speculation = load(tmp_path, speculating(text)).engine.speculation
    assert speculation is not None
    assert speculation.drafts == 3


@pytest.mark.parametrize(("text", "said"), read_mistakes("speculation"))
def test_contradictions_are_named(tmp_path, text, said):
    assert f"engine.speculation.{said}" in refusal(ScenarioError, load, tmp_path, speculating(text))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "replayssm_buffer_len = 8",
            "replayssm_buffer_len: expected only with use_replayssm = true, found 8",
        ),
        (
            'use_replayssm = true\nmodel_runner = "v2"',
            'use_replayssm: expected none with engine.model_runner = "v2", found true',
        ),
        (
            f"use_replayssm = true\n[engine.speculation]\n{NGRAM}",
            "use_replayssm: expected none with engine.speculation, found true",
        ),
    ],
)
def test_replayssm_is_refused_where_vllm_refuses_it(tmp_path, keys, said):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, GOOD.replace("[workload]", f"{keys}\n[workload]", 1))
    assert f"engine.{said}" in str(caught.value)
