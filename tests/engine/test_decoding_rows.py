"""A state that is stored wrongly for one size of a batch: found, on either model runner."""

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import measure
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS
from tests.engine.conftest import HEALTHY

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

SCENARIO = "curated/decoding-rows"


@pytest.fixture(scope="module", params=["cpu-0.31.0+v2", "cpu-0.31.0+v1"])
def pool(request, tmp_path_factory):
    (scenario,) = find(home() / "scenarios", [SCENARIO])
    side = parse_label(request.param)
    require_installed(side.spec)
    work = tmp_path_factory.mktemp("engine")
    with EnginePool(
        scenario, [side], home() / "models", work, print, plugin_settings=SETTINGS
    ) as opened:
        yield opened


@pytest.fixture
def trial(pool):
    """Makes a contract trial with a mutant on; gives what it counted, by metric."""
    control = pool.make_ready(HEALTHY).control

    def made(mutant=None):
        control.mutate(mutant)
        found = measure(Phase.CONTRACT, TrialContext(pool, HEALTHY, pool.work, 0))
        assert found.unsupported == {}
        return {one.metric: one.values[0] for one in found.samples}

    yield made
    control.mutate(None)


def test_healthy_engine_decodes_every_number_of_rows_and_resumes_what_it_stored(trial):
    counts = trial()
    asked = {name: n for name, n in counts.items() if name.startswith("prefix_tokens.")}
    assert not any(n for name, n in counts.items() if name not in asked)
    assert asked["prefix_tokens.hit"] == asked["prefix_tokens.mamba"] == 8 * (128 + 256 + 384 + 512)


def test_last_row_of_six_that_is_not_stored_breaks_a_contract_and_costs_tokens(trial):
    counts = trial("decode-sixth-row-unstored")
    assert counts["contract.states_off"] > 0
    assert counts["contract.wrong_answers"] > 0
