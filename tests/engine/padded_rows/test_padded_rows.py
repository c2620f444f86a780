"""The fix for padded rows on a live engine: switched, told apart, and leaving nothing behind."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import psutil
import pytest

from hybridwatch.analysis.changed_tokens import tokens_across
from hybridwatch.analysis.signed_rank import BlockRow, flip_p
from hybridwatch.analysis.subject import list_sides
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.server import EngineServer
from hybridwatch.errors import BuildError
from hybridwatch.measurement.load import TrialContext, samples_of_steps, sweep
from hybridwatch.measurement.objective import TRIED, search_objective
from hybridwatch.measurement.phase import TrialResult, _probed, measure
from hybridwatch.measurement.right_answers import (
    NO_NUMBERS,
    answered_by,
    find_deviations,
    find_path,
    list_trials,
    load,
    wrong_answers,
)
from hybridwatch.measurement.waves import drive
from hybridwatch.metrics import (
    EXPLAINING,
    SEND_LATENESS,
    SLO_REQUEST_RATE,
    WRONG_ANSWERS,
    WRONG_TOKENS,
)
from hybridwatch.records.identity import FixState
from hybridwatch.records.readings import compute_area, list_places
from hybridwatch.records.run import Phase, Sample
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.workload import Objective, Sweep
from hybridwatch.system.home import home
from hybridwatch_lab.embedded_tasks import word_problem_documents
from tests.builders import a_run_that_said
from tests.engine.conftest import HEALTHY, KNOWN_BAD
from tests.engine.steps import assert_steps_are_seen
from tests.engine.unzeroed import (
    trial_with_fault_in_both_passes,
    wrong_tokens_with_unzeroed_state,
)

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("one engine for the folder, started by the first of its tests"),
]

DOCUMENTS = word_problem_documents(24, seed=20_260_000)


def generate(server: EngineServer, concurrency: int = 3) -> list[str]:
    """Greedy answers to the same questions, three at a time, so that batches are padded to four."""

    def ask(document):
        body = {
            "model": server.launch.served_name,
            "prompt": document.prompt,
            "max_tokens": 12,
            "temperature": 0,
            "ignore_eos": True,
        }
        with httpx.Client(base_url=server.url, timeout=60) as http:
            return http.post("/v1/completions", json=body).json()["choices"][0]["text"]

    with ThreadPoolExecutor(concurrency) as askers:
        return list(askers.map(ask, DOCUMENTS))


def answers_of(pool, scenario, side: int) -> list[str]:
    engine = pool.make_ready(side)
    drive(engine, expand(scenario.workload.prelude, seed=1, section="prelude"))
    return generate(engine.server)


def counts_in(measured: TrialResult) -> dict[str, float]:
    return {sample.metric: sample.values[0] for sample in measured.samples}


def contract_of(trial, side: int) -> dict[str, float]:
    return counts_in(measure(Phase.CONTRACT, trial(side)))


@pytest.fixture(scope="module")
def healthy(pool, tmp_path_factory) -> TrialResult:
    """A contract trial of the healthy side, whatever ran before."""
    pool.make_ready(HEALTHY)
    return measure(Phase.CONTRACT, TrialContext(pool, HEALTHY, tmp_path_factory.mktemp("healthy")))


def test_sides_are_what_their_labels_say(pool):
    healthy, known_bad = pool.identify(HEALTHY), pool.identify(KNOWN_BAD)
    assert healthy.fixes["padded-rows-prefilling"] is FixState.PRESENT
    assert known_bad.fixes["padded-rows-prefilling"] is FixState.REVERTED
    others = set(healthy.fixes) - {"padded-rows-prefilling"}
    assert all(healthy.fixes[fix] is known_bad.fixes[fix] for fix in others)
    assert healthy.release == "0.27.1"
    assert healthy.wheel_digest == known_bad.wheel_digest


def test_contract_distinguishes_the_sides_and_damage_does_not_stay(healthy, trial):
    """Healthy, known-bad, healthy again: the A/A after a known-bad is clean."""
    assert set(counts_in(healthy).values()) == {0.0}
    broken = contract_of(trial, KNOWN_BAD)
    assert broken["contract.padded_rows_prefilling"] > 0
    assert broken["contract.slots_off_block_table"] > 0
    assert set(contract_of(trial, HEALTHY).values()) == {0.0}


def test_state_of_a_new_request_that_is_not_zeroed_is_heard(pool, trial, tmp_path):
    """The pool is so small that slots go from hand to hand within a trial."""
    assert wrong_tokens_with_unzeroed_state(pool, HEALTHY, tmp_path) > 0
    assert set(contract_of(trial, HEALTHY).values()) == {0.0}


def test_healthy_engine_says_what_transformers_says(healthy):
    """By the oracle in oracles/, which shares no code with vLLM."""
    assert counts_in(healthy)[WRONG_ANSWERS] == 0


def test_trusted_engine_writes_down_what_transformers_says(pool, scenario):
    """What `oracle make --by engine` keeps; near ties and last digits may differ."""
    kept = load(find_path(home(), scenario.id))
    assert kept is not None
    waves = list_trials(scenario, 1)[0]
    assert list(find_deviations(kept.trials[:1], [answered_by(pool, waves)])) == []


@pytest.mark.parametrize("fault", ["shifted-decay", "unwritten-state"])
def test_fault_with_and_without_graphs_is_caught_from_outside(
    pool, healthy, trial, tmp_path, monkeypatch, fault
):
    """The engine agrees with itself; the oracle does not, nor does the engine without the fault."""
    faulty = trial_with_fault_in_both_passes(pool, HEALTHY, tmp_path, fault, monkeypatch)
    counts = counts_in(faulty)
    assert counts[WRONG_TOKENS] == 0
    assert counts[WRONG_ANSWERS] > 0
    across = tokens_across(
        *list_sides(a_run_that_said([healthy.completions], [faulty.completions]))
    )
    assert across is not None
    assert across.counts[0] > 0
    again = measure(Phase.CONTRACT, trial(HEALTHY)).completions
    calm = tokens_across(*list_sides(a_run_that_said([healthy.completions], [again])))
    assert calm is not None
    assert calm.counts == (0.0,)


def test_contract_looks_at_every_slot_of_every_group(trial):
    """Three Mamba layers, a cache group each; most groups reuse the metadata of the first."""
    seen = _probed(trial(HEALTHY), "contract")
    assert seen["padded_replays"] > 0
    assert seen["slots"] == seen["replays"] * 4 * 3


def test_tokens_tell_the_sides_apart_and_damage_does_not_stay(pool, scenario):
    healthy = answers_of(pool, scenario, HEALTHY)
    known_bad = answers_of(pool, scenario, KNOWN_BAD)
    assert healthy == answers_of(pool, scenario, HEALTHY)
    wrong = sum(one != other for one, other in zip(healthy, known_bad, strict=True))
    assert wrong > len(healthy) / 2


@pytest.mark.slow  # an engine more; each contract trial compares with a pass without graphs
def test_replayed_graphs_say_the_same_as_no_graphs(pool, scenario, tmp_path):
    """On the healthy engine a replay is only another way to run the same step."""
    replayed = answers_of(pool, scenario, HEALTHY)
    launch = pool.engine(HEALTHY).server.launch
    eager_args = scenario.engine.model_copy(
        update={"cudagraph_mode": "NONE", "cudagraph_capture_sizes": ()}
    )
    eager_launch = replace(launch, engine=eager_args, graph_replay=False)
    with EngineServer(eager_launch, tmp_path / "eager.log") as eager:
        assert generate(eager) == replayed


def test_host_reads_and_metadata_time_are_seen(trial):
    measured = measure(Phase.HOST_SYNC, trial(HEALTHY))
    values = {sample.metric: sample.values for sample in measured.samples}
    assert min(values["host_syncs_per_step"]) >= 1
    assert all(count == int(count) for count in values["host_syncs_per_step"])
    assert min(values["metadata_build_time"]) > 0
    work = measured.host_work
    assert work is not None
    assert 0 < sum(site.reads for site in work.sites) <= sum(values["host_syncs_per_step"])
    assert any(site.place.startswith("vllm/v1/") for site in work.sites)
    phases = [phase.name for phase in work.phases]
    assert phases == ["prepare", "metadata", "forward", "sample", "rest"]
    assert all(phase.seconds > 0 for phase in work.phases)


def test_steps_are_those_that_the_probe_sees_and_make_up_the_throughput(trial):
    ready = trial(HEALTHY)
    result, made = assert_steps_are_seen(ready)
    # Without speculation a request gets one token from a step, so two factors are enough.
    values = (sample.values for sample in samples_of_steps(result, made, 0.0))
    (rate,), (occupancy,), *_ = values
    assert rate * occupancy == pytest.approx(result["output_throughput"], rel=1e-12)
    samples = {one.metric: one.values for one in measure(Phase.PERFORMANCE, ready).samples}
    assert samples.keys() >= EXPLAINING - {SEND_LATENESS}  # of a trace alone
    (work_s,), (steps_per_s,) = samples["engine_cpu_time"], samples["engine_step_rate"]
    # At least a twentieth of a processor's time is work, and no more than all processors gave.
    assert 0.05 < work_s * steps_per_s <= (os.cpu_count() or 1) * 1.05


# Twenty trials at least; tests/unit/calibration shows the same of recorded sessions, and the test
# above that the processor time of a live engine is read.
@pytest.mark.slow
def test_a_tenth_more_work_in_each_step_is_seen_by_processor_time(trial):
    """As many blocks as it takes: what neighbours do to a trial no one trial tells."""

    def work_of(planted: tuple[str, ...]) -> float:
        ready = trial(HEALTHY)
        ready.engine.control.plant(planted)
        samples = measure(Phase.PERFORMANCE, ready).samples
        (seconds,) = next(one.values for one in samples if one.metric == "engine_cpu_time")
        return seconds

    ratios: list[float] = []

    def is_seen_in(block: int) -> bool:
        # Either side comes first in every other block, as in a run.
        order = ((), ("busy-step-10",)) if block % 2 else (("busy-step-10",), ())
        work = {planted: work_of(planted) for planted in order}
        ratios.append(math.log(work["busy-step-10",] / work[()]))
        ((worse, _),) = flip_p([BlockRow(tuple(ratios), shares_variance=False)])
        # After each of up to 60 blocks it may stop: strict, so that chance alone seldom passes.
        return bool(worse.alone < 0.001)

    assert any(map(is_seen_in, range(60))), f"60 blocks show no more work: {ratios}"


def test_wrong_answers_are_named_with_place_and_tokens(trial, scenario):
    kept = load(find_path(home(), scenario.id))
    assert kept is not None
    assert list(wrong_answers(trial(HEALTHY), home(), kept.trials[:1])) == []
    wrong = list(wrong_answers(trial(KNOWN_BAD), home(), kept.trials[:1]))
    # States that grow without bound give logarithms that are no numbers, on some machines.
    with_tokens = [one for one in wrong if one.why != NO_NUMBERS]
    assert with_tokens
    for one in with_tokens:
        assert str(one).startswith(f"trial 0, request {one.request}: token {one.position}: ")


def test_known_bad_reads_more_on_the_host(trial):
    def mean_reads(side):
        reads = measure(Phase.HOST_SYNC, trial(side)).samples[0].values
        return sum(reads) / len(reads)

    assert mean_reads(KNOWN_BAD) > 1.2 * mean_reads(HEALTHY)


def test_a_fix_that_cannot_be_switched_is_refused_and_the_engine_lives(pool):
    engine = pool.make_ready(HEALTHY)
    with pytest.raises(BuildError, match="no fix 'padded-rows'; known: padded-rows-prefilling"):
        engine.control.switch({"padded-rows": False})
    assert engine.server.is_well()


def test_engine_listens_on_loopback_only(pool):
    pool.engine(HEALTHY)
    family = psutil.Process().children(recursive=True)
    listening = [
        connection.laddr.ip
        for process in family
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}


def test_unknown_fix_in_a_label_is_refused():
    with pytest.raises(BuildError, match="padded-rows"):
        parse_label("cpu-0.27.1~padded-rows")


@pytest.mark.parametrize(("ttft_ms", "keeps"), [(0.001, False), (600_000, True)])
def test_a_search_loads_the_engine_at_rates_of_its_own(trial, pool, monkeypatch, ttft_ms, keeps):
    scenario, workload = pool.scenario, pool.scenario.workload
    changed = {"search": 3, "slo": Objective(ttft_ms=ttft_ms)}
    load = workload.generation.model_copy(update=changed)
    loaded = workload.model_copy(update={"generation": load})
    monkeypatch.setattr(pool, "scenario", scenario.model_copy(update={"workload": loaded}))
    (found,), kept = search_objective(trial(HEALTHY), {"request_throughput": 20.0})
    rates = [rate for rate, _ in kept[TRIED]]
    assert len(rates) == 3
    assert rates == sorted(rates, reverse=not keeps)
    assert found == Sample(SLO_REQUEST_RATE, (rates[-1] if keeps else 0.0,))


@pytest.mark.parametrize(
    "wanted", [Sweep(max_concurrency=(1, 2, 3)), Sweep(request_rate=(20.0, 40.0, 80.0))]
)
def test_a_sweep_gives_a_point_for_each_load_and_each_load_all_its_tokens(trial, scenario, wanted):
    samples, curve = sweep(trial(HEALTHY), wanted)
    assert [point.load for point in curve.points] == list(wanted.loads)
    assert {sample.metric for sample in samples} == {"curve_area", "engine_cpu_time"}
    places = list_places(curve)
    assert places is not None
    assert samples[0].values == (compute_area(places),)
    asked = scenario.workload.generation
    for point in curve.points:
        assert point.client_result is not None
        assert point.client_result["total_output_tokens"] == asked.prompts * asked.output_tokens
        times = [one.values for one in point.samples if one.metric in {"ttft", "tpot"}]
        assert list(map(len, times)) == [asked.prompts] * 2
        assert point.joules_per_token is None
