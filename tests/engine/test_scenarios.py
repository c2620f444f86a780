"""Every scenario sees its own bug on a real engine, and none where there is none.

One seed of each; `hybridwatch controls --seeds 20` is the long form.
"""

import pytest

from hybridwatch.engine.builds import home, parse_label
from hybridwatch.engine.check import require_installed
from hybridwatch.engine.native import healthy_label, known_bad_label
from hybridwatch.measure.bench import Bench
from hybridwatch.measure.phase import Station, measure
from hybridwatch.metric.catalogue import WRONG_TOKENS
from hybridwatch.record.run import Phase
from hybridwatch.scenario.load import find
from tests.engine.conftest import BUILD, HEALTHY, KNOWN_BAD

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TELLING = {
    "smoke/single-token-extend": "contract.prefills_in_decode_graph",
    "smoke/dummy-run": "contract.blocks_in_dummy_runs",
    "curated/dummy-run-vacated-rows": "contract.blocks_in_dummy_runs",
    "curated/dp-dummy-run": "contract.blocks_in_dummy_runs",
    "curated/nixl-disagg": "contract.prefills_in_decode_graph",
    "reported/dummy-run-padding": "contract.blocks_in_dummy_runs",
    "reported/i57720-one-token-prompt": "contract.prefills_in_decode_graph",
}
"""Scenario to the contract that its known-bad breaks; the first one has a test file of its own."""


def test_no_scenario_is_left_out():
    known = {scenario.id for scenario in find(home() / "scenarios", [])}
    assert known - {"smoke/padded-graph-rows"} == set(TELLING)


@pytest.mark.parametrize("scenario_id", TELLING)
def test_known_bad_is_told_from_healthy(scenario_id, tmp_path):
    (scenario,) = find(home() / "scenarios", [scenario_id])
    require_installed(parse_label(BUILD).spec)
    named = BUILD, scenario.fix, scenario.requires
    labels = healthy_label(*named), known_bad_label(*named)
    sides = tuple(parse_label(label) for label in labels)
    with Bench(scenario, sides, home() / "models", tmp_path, print) as bench:
        broken = _contract(bench, KNOWN_BAD, tmp_path)
        # After the known-bad, so that damage which stayed would be seen.
        healthy = _contract(bench, HEALTHY, tmp_path)
    assert set(healthy.values()) == {0.0}
    assert broken[TELLING[scenario_id]] > 0
    assert broken[WRONG_TOKENS] > 0


def _contract(bench, side, work):
    bench.make_ready(side)
    samples = measure(Phase.CONTRACT, Station(bench, side, work)).samples
    return {sample.metric: sample.values[0] for sample in samples}
