"""Scenarios of models that are not ours: made-up weights, models of the hub, speed alone."""

from pathlib import Path

import pytest

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, load_scenario
from hybridwatch.scenarios.scenario import Scenario
from tests.unit.scenarios.test_load import GOOD

ACCURACY = GOOD[GOOD.index("[accuracy]") : GOOD.index("[trials]")]
AT_LEAST = GOOD[GOOD.index("[expect.at_least]") :]
DUMMY = GOOD.replace('dtype = "float32"', 'dtype = "bfloat16"\nload_format = "dummy"', 1)
MADE_UP = DUMMY.replace(ACCURACY, "").replace(AT_LEAST, "")
SPEED_ALONE = MADE_UP[: MADE_UP.index("[expect.exactly]")] + "[expect]\n"


def load(tmp_path: Path, text: str) -> Scenario:
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path, tmp_path)


def test_made_up_weights_have_contracts_and_no_answers(tmp_path):
    scenario = load(tmp_path, MADE_UP)
    assert scenario.accuracy is None
    assert not scenario.is_of_speed_alone
    assert digest(scenario) != digest(load(tmp_path, GOOD))


def test_without_contracts_either_nothing_needs_to_be_expected(tmp_path):
    text = SPEED_ALONE.replace("contract = 3", "contract = 0")
    assert text != SPEED_ALONE
    assert load(tmp_path, text).is_of_speed_alone


def test_a_model_of_the_hub_may_be_pinned(tmp_path):
    text = GOOD.replace('model = "tiny-hybrid"', 'model = "owner/name"\nrevision = "abc123"')
    scenario = load(tmp_path, text)
    assert (scenario.on_hub, scenario.revision) == (True, "abc123")
    assert digest(scenario) != digest(load(tmp_path, text.replace("abc123", "abc124")))


@pytest.mark.parametrize(("accelerator", "cpu"), [("", True), ('accelerator = "cuda"\n', False)])
def test_a_scenario_may_need_a_gpu(tmp_path, accelerator, cpu):
    scenario = load(tmp_path, accelerator + GOOD)
    assert scenario.fits("cpu") is cpu
    assert scenario.fits("cuda")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            DUMMY,
            "accuracy: expected none with engine.load_format dummy: its answers say nothing",
        ),
        (
            MADE_UP.replace('"tiny-hybrid"', '"owner/name"'),
            "engine.load_format: expected none with a model of the hub (owner/name)",
        ),
        (
            'revision = "abc"\n' + GOOD,
            'revision: expected none with a model of our own ("tiny-hybrid")',
        ),
        (
            'revision = "a b"\n' + GOOD,
            'revision: expected a commit, tag or branch, found "a b"',
        ),
        (
            'accelerator = "tpu"\n' + GOOD,
            'accelerator: expected one of "cpu", "cuda", found "tpu"',
        ),
        (
            GOOD.replace('"FULL_DECODE_ONLY"', '"FULL_AND_PIECEWISE"'),
            "engine.compilation_mode: missing; expected 3 with cudagraph_mode FULL_AND_PIECEWISE",
        ),
        (
            MADE_UP.replace('"dummy"', '"dumy"'),
            'engine.load_format: expected "dummy", found "dumy"',
        ),
        (
            SPEED_ALONE,
            "expect: expected at least one metric under exactly or at_least, found none",
        ),
    ],
)
def test_each_mistake_is_told(tmp_path, text, said):
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value).partition("a.toml: ")[2] == said
