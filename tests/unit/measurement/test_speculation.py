"""Speculation: the command line, what is measured of it, and which sides share an engine."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.launch import Launch
from hybridwatch.errors import BuildError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import samples_of_client
from hybridwatch.scenarios.engine import Speculation
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home

CLIENT = {
    "ttfts": [0.1],
    "itls": [[0.01]],
    "output_lens": [2],
    "output_throughput": 20.0,
    "request_throughput": 10.0,
}
NGRAM = Speculation(method="ngram", drafts=3, lookup_min=1, lookup_max=4)
EAGLE = Speculation(method="eagle", drafts=2, model="a-head")


@pytest.fixture
def scenario():
    root = home() / "scenarios"
    return load_scenario(root / "smoke" / "padded-graph-rows.toml", root)


def with_speculation(scenario, speculation):
    engine = scenario.engine.model_copy(update={"speculation": speculation})
    return scenario.model_copy(update={"engine": engine})


def launch(scenario):
    return Launch(
        python=Path("python"),
        model=Path("models/a-target"),
        served_name="name",
        engine=scenario.engine,
        graph_replay=True,
        fixes={},
        environment={},
        flags={},
    )


def config_of(scenario):
    said = dict(pairwise(launch(scenario).command(8123))).get("--speculative-config")
    return None if said is None else json.loads(said)


def test_an_engine_without_speculation_is_reported_nothing_of_it(scenario):
    assert config_of(scenario) is None


def test_ngram_is_reported_how_far_it_looks_back(scenario):
    assert config_of(with_speculation(scenario, NGRAM)) == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_min": 1,
        "prompt_lookup_max": 4,
    }


def test_a_draft_lies_next_to_the_target(scenario):
    assert config_of(with_speculation(scenario, EAGLE)) == {
        "method": "eagle",
        "num_speculative_tokens": 2,
        "model": "models/a-head",
    }


def test_a_draft_that_is_missing_is_reported_before_anything_starts(scenario, tmp_path):
    (tmp_path / "tiny-hybrid").mkdir()
    sides = (parse_label("cpu-0.27.1"),)
    pool = EnginePool(with_speculation(scenario, EAGLE), sides, tmp_path, tmp_path, print)
    with (
        pytest.raises(
            BuildError, match=r"engine\.speculation\.model: expected a folder 'a-head' in"
        ),
        pool,
    ):
        pass


def values(result):
    return {sample.metric: sample.values for sample in samples_of_client(result)}


def test_what_became_of_the_drafts_is_measured():
    drafts = {
        "spec_decode_num_drafts": 8,
        "spec_decode_acceptance_length": 1.75,
        "spec_decode_per_position_acceptance_rates": [0.5, 0.25],
    }
    measured = values(CLIENT | drafts)
    assert measured["acceptance_length"] == (1.75,)
    assert measured["acceptance_rate.position_1"] == (0.5,)
    assert measured["acceptance_rate.position_2"] == (0.25,)


@pytest.mark.parametrize("none", [{}, {"spec_decode_num_drafts": 0}])
def test_nothing_is_said_of_drafts_when_there_were_none(none):
    assert not [name for name in values(CLIENT | none) if name.startswith("acceptance")]


def engines_of(scenario, tmp_path, *labels):
    """The engines that the sides would be measured on."""
    (tmp_path / "tiny-hybrid").mkdir(exist_ok=True)
    sides = tuple(map(parse_label, labels))
    with EnginePool(scenario, sides, tmp_path, tmp_path, print) as pool:
        return [pool.client(side) for side in range(len(sides))]


def test_sides_that_differ_by_a_live_fix_share_an_engine(scenario, tmp_path):
    live = "cpu-0.27.1~all-cache-spec-decode-anchor"
    one, other = engines_of(scenario, tmp_path, "cpu-0.27.1", live)
    assert one is other


def test_sides_that_differ_by_a_fix_of_the_start_do_not(scenario, tmp_path):
    start = "cpu-0.27.1~all-cache-spec-decode-slots"
    one, other, third = engines_of(scenario, tmp_path, "cpu-0.27.1", start, start)
    assert one is not other
    assert other is third


def test_a_fix_of_the_start_is_switched_before_the_engine_comes_up(scenario, tmp_path):
    (tmp_path / "tiny-hybrid").mkdir()
    label = "cpu-0.27.1~all-cache-spec-decode-slots~padded-rows-prefilling"
    side = parse_label(label)
    spec = side.spec.model_copy(update={"fixes": {"single-token-extend": "apply"}})
    with EnginePool(scenario, (replace(side, spec=spec),), tmp_path, tmp_path, print) as pool:
        asked = pool.client(0).launch.fixes
    assert asked == {"single-token-extend": True, "all-cache-spec-decode-slots": False}
