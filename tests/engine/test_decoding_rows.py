"""A state stored wrongly for one size of a batch, a leak, half a cache, how long a start takes.

Found on either model runner.
"""

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext, run_prelude
from hybridwatch.measurement.memory import begin_memory, read_capacity, samples_of_memory
from hybridwatch.measurement.phase import measure
from hybridwatch.measurement.waves import drive
from hybridwatch.metrics import CAPACITY_METRICS, REQUEST_BLOCKS
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS
from tests.engine.conftest import HEALTHY

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("two engines, of which one interprets its kernels"),
    pytest.mark.timeout(600),
]

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


KIB = 2**10
REQUESTS = tuple(
    PlannedRequest(tuple(10 + (number + at) % 40 for at in range(48)), max_tokens=8)
    for number in range(12)
)
LOAD = PlannedWave(REQUESTS, "queue", max_concurrency=6)


@pytest.fixture
def memory(pool):
    """What a trial says of memory, with a fault planted: 12 requests in place of the timed load."""
    control = pool.make_ready(HEALTHY).control

    def told(*faults):
        engine = pool.make_ready(HEALTHY)
        control.plant(faults)
        context = TrialContext(pool, HEALTHY, pool.work, 0)
        before = begin_memory(context)
        run_prelude(context)
        drive(engine, [LOAD])
        samples = (*samples_of_memory(before, context), *read_capacity(context)[0])
        return {one.metric: one.values[0] for one in samples}

    yield told
    control.plant(())


def least_growth(memory, *faults, below, trials):
    """Of several trials the least: requests of a new shape take memory for good, the first time.

    The first that is low enough is the last.
    """
    least = float("inf")
    for _ in range(trials):
        least = min(least, memory(*faults)["memory_growth"])
        if least < below:
            break
    return least


def test_memory_that_every_request_leaves_is_told_per_request(memory):
    # How many trials it takes until nothing is new hangs on what the engine did before.
    assert least_growth(memory, below=16 * KIB, trials=20) < 16 * KIB
    leaked = least_growth(memory, "leaked-kib-64", below=80 * KIB, trials=5)
    assert 60 * KIB < leaked < 80 * KIB


CACHE = (*CAPACITY_METRICS, REQUEST_BLOCKS)


def test_half_a_cache_is_told_exactly_and_a_request_takes_what_it_took(memory):
    healthy, halved, again = (
        [told[name] for name in CACHE] for told in (memory(), memory("halved-cache"), memory())
    )
    assert healthy == again
    (blocks, tokens, *of_request), (left, fitting, *of_request_then) = healthy, halved
    assert (blocks, left) == (159, 79)
    assert fitting == pytest.approx(tokens * left / blocks, abs=1)
    assert of_request == of_request_then
    assert min(of_request) > 0


def test_a_start_is_told_phase_by_phase_and_what_is_not_compiled_has_none(pool):
    start = dict(pool.make_ready(HEALTHY).start)
    whole = start.pop("start_time")
    assert start.keys() == {"weights_time", "capture_time"}
    assert 0 < min(start.values()) < sum(start.values()) < whole
