"""The table that sweeps loads: what it refuses, and what of it is part of a scenario's digest."""

import pytest

from hybridwatch.engines.builds import FAULTS
from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.load import digest, find, load_scenario
from hybridwatch.system.home import home
from tests.unit.scenarios.test_load import GOOD

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


@pytest.fixture
def load(tmp_path):
    """Load the example with a table of its own for sweeps."""

    def of(text):
        path = tmp_path / "example.toml"
        path.write_text(text)
        return load_scenario(path, tmp_path)

    return of


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_a_sweep_that_cannot_be_one_is_refused(load, text, says):
    with pytest.raises(ScenarioError) as refused:
        load(with_sweep(text))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("output_tokens = 48\nmax", "output_tokens = 1\nmax", "expected at least 2 with a sweep"),
        ("seed = 7", "seed = 7\nrequest_rate = 2.0", "request_rate: expected none with a sweep"),
    ],
)
def test_a_load_that_a_sweep_cannot_vary_is_refused(load, old, new, says):
    text = with_sweep(RISING)
    assert old in text
    with pytest.raises(ScenarioError, match=says):
        load(text.replace(old, new, 1))


def test_each_point_is_the_load_with_another_number(load):
    scenario = load(with_sweep("request_rate = [0.5, 1, 8]\n[sweep.slo]\nttft_ms = 200"))
    assert scenario.sweep.loads == (0.5, 1.0, 8.0)
    base = scenario.workload.generation
    found = [scenario.sweep.at(load, base) for load in scenario.sweep.loads]
    assert [one.request_rate for one in found] == [0.5, 1.0, 8.0]
    assert {one.model_copy(update={"request_rate": None}) for one in found} == {base}
    assert scenario.sweep.slo.bounds == {"ttft": 0.2}


def test_loads_and_objective_are_what_is_asked_and_the_fault_is_not(load):
    plain = digest(load(with_sweep(RISING)))
    assert digest(load(with_sweep(f'{RISING}\nknown_bad = "slow-step"'))) == plain
    assert (
        digest(load(with_sweep("max_concurrency = [1, 2, 3]\n[sweep.slo]\nttft_ms = 1"))) != plain
    )
    assert digest(load(GOOD)) != plain


def test_every_shipped_sweep_names_a_fault_that_a_label_can_plant():
    swept = [scenario for scenario in find(home() / "scenarios", []) if scenario.sweep]
    assert swept
    assert {scenario.slow_control for scenario in swept} <= set(FAULTS)
