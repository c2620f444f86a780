"""Each family of hybrid models is replayed, watched, and told from what is wrong with it.

The families whose known-bad is a fix taken out are in ``test_scenarios.py`` with all others; here
are gated delta nets, whose control are mutants, and what no scenario can show.
"""

import json

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import measure
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS
from tests.engine.conftest import BUILD, HEALTHY

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine, of the one family whose controls are mutants"),
    pytest.mark.timeout(600),
]

DELTA_NETS = "smoke/family-qwen3-next"
REQUESTS, TRIALS = 500, 20


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """An engine of gated delta nets as it is released."""
    (scenario,) = find(home() / "scenarios", [DELTA_NETS])
    side = parse_label(BUILD)
    require_installed(side.spec)
    work = tmp_path_factory.mktemp("engine")
    with EnginePool(
        scenario, [side], home() / "models", work, print, plugin_settings=SETTINGS
    ) as open_bench:
        yield open_bench


def a_trial(pool, number=0):
    """One contract trial: its counts without the family's name, and the answers."""
    pool.make_ready(HEALTHY)
    measured = measure(Phase.CONTRACT, TrialContext(pool, HEALTHY, pool.work, number))
    assert measured.unsupported == {}
    counts = {one.metric.partition(".")[2]: one.values[0] for one in measured.samples}
    return counts, [one.tokens for one in measured.completions]


@pytest.fixture
def mutant(pool):
    """Has a mutant on in the live engine for one trial."""
    control = pool.make_ready(HEALTHY).control

    def on(name):
        control.mutate(name)
        return a_trial(pool)

    yield on
    control.mutate(None)


@pytest.fixture(scope="module")
def healthy(pool):
    return a_trial(pool)


def test_gated_delta_nets_are_watched_and_clean(healthy):
    counts, _ = healthy
    watched = {"states_off", "slots_off_block_table", "prefills_in_decode_graph", "wrong_tokens"}
    assert watched <= counts.keys()
    assert set(counts.values()) == {0.0}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("delta-slots-stale", {"slots_off_block_table", "wrong_tokens"}),
        ("delta-slots-shared", {"slots_off_block_table", "states_off"}),
        ("delta-padding-unrefreshed", {"slots_off_block_table", "wrong_tokens"}),
    ],
)
def test_faults_of_gated_delta_nets_are_distinguished(mutant, healthy, name, broken):
    counts, answers = mutant(name)
    assert {rule for rule, times in counts.items() if times} >= broken
    assert answers != healthy[1]


def test_replay_of_fewer_layers_than_the_scenario_needs_is_a_failed_trial(pool, monkeypatch):
    whole = pool.scenario
    expect = whole.expect.model_copy(update={"replayed_layers": {"gated_delta_net": 4}})
    monkeypatch.setattr(pool, "scenario", whole.model_copy(update={"expect": expect}))
    with pytest.raises(MeasurementError, match="expected 4 in each replayed graph, found 3 gated"):
        a_trial(pool)


@pytest.mark.slow  # twenty trials that say what one says
def test_gated_delta_nets_say_the_same_with_graphs_as_without(pool):
    """``wrong_tokens`` holds each request against the same engine without graphs."""
    trials = [a_trial(pool, number) for number in range(TRIALS)]
    wrong = sum(counts[WRONG_TOKENS.partition(".")[2]] for counts, _ in trials)
    compared = sum(len(answers) for _, answers in trials)
    assert (wrong, compared >= REQUESTS) == (0, True)


@pytest.mark.slow  # a probe that does not know an engine is tested without one, too
def test_experts_next_to_short_convolutions_are_watched_with_weights_of_vllm(tmp_path):
    """The sparse sibling of LFM2, of which no scenario is made."""
    (scenario,) = find(home() / "scenarios", ["curated/family-lfm2"])
    dense = json.loads((home() / "models" / scenario.model / "config.json").read_text())
    sparse = {
        "architectures": ["Lfm2MoeForCausalLM"],
        "model_type": "lfm2_moe",
        "moe_intermediate_size": 64,
        "num_dense_layers": 2,
        "num_experts": 4,
        "num_experts_per_tok": 2,
    }
    folder = tmp_path / "models" / "configs" / "sparse"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dense | sparse))
    (tmp_path / "models" / "tiny-hybrid").symlink_to(home() / "models" / "tiny-hybrid")
    engine = scenario.engine.model_copy(update={"load_format": "dummy"})
    small = scenario.model_copy(update={"model": "sparse", "engine": engine})
    with EnginePool(small, [parse_label(BUILD)], tmp_path / "models", tmp_path, print) as pool:
        counts, _ = a_trial(pool)
    assert counts["states_off"] == counts["slots_off_block_table"] == 0
