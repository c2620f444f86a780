"""The tables of a sweep, of speculation and the keys of ReplaySSM, and what contradicts in them."""

import pytest

from hybridwatch.engines.builds import FAULTS
from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, find
from hybridwatch.system.home import home
from tests.refusals import refusal
from tests.unit.scenarios.example import GOOD, load

RISING = "max_concurrency = [1, 2, 3]"
MISTAKES = [
    ("", "max_concurrency: expected at least 3 rising numbers, found none"),
    ("max_concurrency = [1, 2]", "max_concurrency: expected at least 3 rising numbers, found 1, 2"),
    ("max_concurrency = [1, 3, 2]", "expected at least 3 rising numbers, found 1, 3, 2"),
    ("request_rate = [1, 1, 2]", "request_rate: expected at least 3 rising numbers, found 1, 1, 2"),
    ("request_rate = [0, 1, 2]", "request_rate[0]: expected a number from 0.001"),
    (f"{RISING}\nrequest_rate = [1, 2, 4]", "request_rate: expected it or max_concurrency, found"),
    (
        "max_concurrency = [1, 2, 400]",
        "sweep.max_concurrency: expected at most workload.generation.max_concurrency (3), found 4",
    ),
    (f"{RISING}\n[sweep.slo]", "sweep.slo.ttft_ms: expected it or tpot_ms, found neither"),
    (f"{RISING}\n[sweep.slo]\ntpot_ms = 0", "sweep.slo.tpot_ms: expected a number from 0.001"),
]


def with_sweep(text):
    return GOOD.replace("[trials]", f"[sweep]\n{text}\n\n[trials]", 1)


@pytest.mark.parametrize(("text", "says"), MISTAKES)
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

CONTRADICTIONS = [
    (NGRAM + 'model = "a-head"\n', 'model: expected none with method "ngram", found "a-head"'),
    (
        NGRAM + "lookup_min = 5\nlookup_max = 2\n",
        "lookup_min: expected at most lookup_max (2), found 5",
    ),
    (OWN + 'model = "a-head"\n', 'model: expected none with method "mtp", found "a-head"'),
    (OWN + "lookup_min = 2\n", 'lookup_min: expected only with method "ngram", found 2'),
    ('method = "eagle"\ndrafts = 3\n', 'model: missing; method "eagle" needs it'),
    ('method = "draft_model"\ndrafts = 3\n', 'model: missing; method "draft_model" needs it'),
    (HEAD + "lookup_min = 2\n", 'lookup_min: expected only with method "ngram", found 2'),
    (HEAD + "lookup_max = 2\n", 'lookup_max: expected only with method "ngram", found 2'),
    (
        HEAD.replace("drafts = 3", "drafts = 0"),
        "drafts: expected an integer from 1 to 16, found 0",
    ),
    (NGRAM.replace("ngram", "oracle"), "method: expected one of"),
]


def speculating(text):
    return GOOD.replace("[workload]", f"[engine.speculation]\n{text}\n[workload]", 1)


@pytest.mark.parametrize("text", [NGRAM, NGRAM + "lookup_min = 2\nlookup_max = 2\n", OWN, HEAD])
def test_speculation_that_makes_sense_is_taken(tmp_path, text):
    speculation = load(tmp_path, speculating(text)).engine.speculation
    assert speculation is not None
    assert speculation.drafts == 3


@pytest.mark.parametrize(("text", "said"), CONTRADICTIONS)
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
