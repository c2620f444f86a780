"""What a trial makes of what the probes saw, and when it refuses it."""

from collections.abc import Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from hybridwatch.analysis.subject import find_phase, list_statistics
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement import load, phase
from hybridwatch.measurement.completions import unrepeated
from hybridwatch.measurement.phase import (
    CONTRACTS,
    SITES_KEPT,
    compute_host_work,
    measure,
    prefix_tokens_in,
    require_decoding_rows,
    require_replayed_layers,
    samples_of_waits,
)
from hybridwatch.metrics import Direction, Kind, find_metric
from hybridwatch.records.run import CallSite, Phase, Sample, StepPhase
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from tests.builders import said

READS = {"reads_per_step": [2, 0], "sites": {"a.py:f:1": 2}, "site_seconds": {"a.py:f:1": 0.003}}
WAITS = {
    **READS,
    "site_kinds": {"a.py:f:1": {"copy": 1, "event": 1, "item": 0}},
    "wait_seconds_per_step": [0.003, 0.0],
    "step_seconds": [0.012, 0.01],
    "untimed": 0,
    "other_threads": {"waits": 0, "seconds": 0.0},
}


def test_the_busiest_sites_are_kept_and_phases_that_took_time():
    reads = {f"a.py:f:{line:02}": line for line in range(1, 31)}
    seen = {"sites": reads, "site_seconds": {site: count / 1e3 for site, count in reads.items()}}
    work = compute_host_work(seen, {"prepare": [0.1, 0.4, 0.2], "draft": [0.0, 0.0, 0.0]})
    assert len(work.sites) == SITES_KEPT
    assert work.sites[0] == CallSite("a.py:f:30", 30, 0.03)
    assert work.sites[-1].reads == 11
    assert work.phases == (StepPhase("prepare", 0.2),)


def test_sites_of_as_many_reads_are_in_one_order():
    seen = {"sites": {"b": 2, "a": 2}, "site_seconds": {"a": 0.1, "b": 0.2}}
    assert [site.place for site in compute_host_work(seen, {}).sites] == ["a", "b"]


def test_waits_for_the_device_are_reported_with_their_share_of_the_step():
    time, share = samples_of_waits(WAITS)
    assert time == Sample("host_sync_time", (0.003, 0.0))
    assert share == Sample("host_sync_share", (0.25, 0.0))


def test_a_cpu_waits_for_no_device():
    assert samples_of_waits(READS) == ()


def test_a_site_has_the_kind_of_most_of_its_waits():
    assert compute_host_work(WAITS, {}).sites == (CallSite("a.py:f:1", 2, 0.003, "copy"),)
    assert compute_host_work(READS, {}).sites == (CallSite("a.py:f:1", 2, 0.003),)


@pytest.mark.parametrize(
    ("metric", "statistics"),
    [("host_sync_time", ("median", "p99")), ("host_sync_share", ("median",))],
)
def test_waits_are_compared_as_metrics_of_the_host_sync_phase(metric, statistics):
    assert find_phase(find_metric(metric)) is Phase.HOST_SYNC
    assert list_statistics(find_metric(metric)) == statistics


@pytest.fixture
def probes(monkeypatch):
    """Names of the probes that a trial turned on, on an engine that is none."""
    started = []

    @contextmanager
    def watching(_trial, probe):
        started.append(probe)
        yield {**WAITS, "seconds": [0.001, 0.001], "phases": {}}

    result = {
        "output_throughput": 9.0, "request_throughput": 1.0, "ttfts": [0.1], "itls": [[0.1]],
        "output_lens": [2],
    }  # fmt: skip
    monkeypatch.setattr(phase, "_watching", watching)
    monkeypatch.setattr(phase, "run_prelude", lambda _trial: None)
    for module in (phase, load):
        monkeypatch.setattr(module, "run_load", lambda _trial, _load: result)
    monkeypatch.setattr(phase, "begin_memory", lambda _trial: None)
    monkeypatch.setattr(phase, "samples_of_memory", lambda *_: ())
    monkeypatch.setattr(phase, "read_capacity", lambda _trial: ((), {}))
    monkeypatch.setattr(load, "read_step_counts", lambda _server: None)
    return started


class Control:
    """Refuses whatever is no business of a timed trial."""

    def start_probe(self, name):
        raise AssertionError(f"probe {name} turned on")


def trial():
    server = SimpleNamespace(servers=())
    engine = SimpleNamespace(
        server=server, control=Control(), setting=None, settle=lambda _: None, start={}
    )
    load = SimpleNamespace(search=None, slo=None)
    scenario = SimpleNamespace(sweep=None, workload=SimpleNamespace(generation=load))
    return SimpleNamespace(engine=engine, scenario=scenario, is_warmup=False)


def test_no_probe_is_on_in_a_throughput_trial(probes):
    told = {sample.metric for sample in measure(Phase.PERFORMANCE, trial()).samples}
    assert "output_throughput" in told
    assert probes == []


def test_a_host_sync_trial_tells_what_its_probes_saw(probes):
    samples = measure(Phase.HOST_SYNC, trial()).samples
    assert probes == ["host-sync", "metadata-time"]
    assert [sample.metric for sample in samples] == [
        "host_syncs_per_step",
        "host_sync_time",
        "host_sync_share",
        "metadata_build_time",
    ]


COUNTED = {
    "prefix_tokens_asked": 900,
    "prefix_tokens_hit": 384,
    "prefix_tokens_attention": 512,
    "prefix_tokens_mamba": 384,
    "repeats": 3,
}


def test_each_count_is_a_metric_that_a_scenario_can_expect():
    found = prefix_tokens_in(COUNTED)
    assert found == {
        "prefix_tokens.asked": 900,
        "prefix_tokens.hit": 384,
        "prefix_tokens.attention": 512,
        "prefix_tokens.mamba": 384,
    }
    for name in found:
        metric = find_metric(name)
        assert (metric.kind, metric.better) == (Kind.COUNT, Direction.HIGHER)
        assert metric.kind.can_be_expected


def test_an_engine_that_nobody_asked_has_none():
    assert prefix_tokens_in({**COUNTED, "prefix_tokens_asked": 0}) == {}
    assert prefix_tokens_in({"replays": 3}) == {}


def test_what_a_release_cannot_say_is_left_out():
    counted = {name: COUNTED[name] for name in ("prefix_tokens_asked", "prefix_tokens_hit")}
    assert set(prefix_tokens_in(counted)) == {"prefix_tokens.asked", "prefix_tokens.hit"}


def test_the_rules_of_the_prefix_cache_are_contracts():
    assert {"prefix_hit_uncached", "cached_states_off", "repeats_missed"} <= set(CONTRACTS)


def counts(graphs: int, **layers: int) -> Mapping[str, object]:
    return {"graphs_replayed": graphs, "layers_replayed": layers}


def test_replay_of_no_layer_is_refused_with_the_reason() -> None:
    unwatched = {"replays": "linear_attn: expected metadata built as for Mamba"}
    with pytest.raises(MeasurementError, match=r"captured 0 recurrent .* its 3 .*: linear_attn"):
        require_replayed_layers(counts(3), unwatched, ())


@pytest.mark.parametrize("seen", [counts(0), counts(3, mamba2=9)])
def test_replay_of_layers_and_trial_without_graphs_are_taken(seen: Mapping[str, object]) -> None:
    require_replayed_layers(seen, {}, ())


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (counts(3, mamba2=9), "found 3 mamba2"),
        (counts(4, gated_delta_net=11), "found 2.75 gated_delta_net"),
        (counts(0), "found that none was replayed"),
    ],
)
def test_replay_of_fewer_layers_than_a_scenario_needs_is_refused(seen, found) -> None:
    wanted = r"expect.replayed_layers.gated_delta_net: expected 3 in each replayed graph, "
    with pytest.raises(MeasurementError, match=wanted + found):
        require_replayed_layers(seen, {}, [("gated_delta_net", 3)])


def test_replay_of_all_layers_that_a_scenario_needs_is_taken() -> None:
    require_replayed_layers(counts(4, gated_delta_net=12), {}, [("gated_delta_net", 3)])


def test_stages_of_a_pipeline_replay_a_graph_between_them() -> None:
    seen, wanted = counts(8, mamba2=12), [("mamba2", 3)]
    require_replayed_layers(seen, {}, wanted, stages=2)
    with pytest.raises(MeasurementError, match=r"found 1\.5 mamba2"):
        require_replayed_layers(seen, {}, wanted)


def test_trial_that_decodes_every_number_of_rows_is_taken() -> None:
    require_decoding_rows({"decoding_rows": {"1": 4, "3": 1, "2": 9}}, {}, 3)
    require_decoding_rows({}, {}, 0)


@pytest.mark.parametrize(
    ("seen", "unwatched", "found"),
    [
        ({"decoding_rows": {"1": 4, "2": 9, "4": 1}}, {}, "found none of 3$"),
        ({}, {"decoding_rows": "no such runner"}, "found none of 1, 2, 3, 4: no such runner"),
    ],
)
def test_scheduler_that_batches_no_three_is_told(seen, unwatched, found) -> None:
    wanted = "expect.decoding_rows: expected steps in which each number of requests from 1 to 4 "
    with pytest.raises(MeasurementError, match=f"{wanted}decodes, {found}"):
        require_decoding_rows(seen, unwatched, 4)


ONE = PlannedWave((PlannedRequest((5,), 2), PlannedRequest((6,), 2)))
AGAIN = PlannedWave(ONE.requests, again=True)


def count(*answered, waves=(ONE, AGAIN), dtype="float32"):
    return unrepeated(waves, answered, dtype)


def test_nothing_is_counted_where_nobody_asks_again():
    assert count(said(1, 2), said(3, 4), waves=(ONE,)) is None


def test_equal_answers_count_0_and_each_other_one_counts():
    alike = said(1, 2), said(3, 4), said(1, 2)
    assert count(*alike, said(3, 4)) == 0
    assert count(*alike, said(3, 5)) == 1
    assert count(*alike, said()) == 1


def test_each_wave_is_held_against_the_one_before_it():
    answers = said(1), said(2), said(1), said(2), said(7), said(2)
    assert count(*answers, waves=(ONE, AGAIN, AGAIN)) == 1


def test_what_rounding_decides_does_not_count():
    near = said(1, 2, near={1: (9, 0.0006)}), said(3, 4), said(1, 9, near={1: (2, 0.0004)})
    assert count(*near, said(3, 4)) == 0
    far = said(1, 2, near={1: (9, 0.02)}), said(3, 4), said(1, 9, near={1: (2, 0.02)}), said(3, 4)
    assert count(*far) == 1
    assert count(*far, dtype="bfloat16") == 0


def test_a_request_that_nobody_waited_for_is_not_compared():
    gone = PlannedWave((PlannedRequest((5,), 2, abort_at_step=1), ONE.requests[1]), "steps")
    assert count(said(), said(3, 4), said(1, 2), said(3, 4), waves=(gone, AGAIN)) == 0
