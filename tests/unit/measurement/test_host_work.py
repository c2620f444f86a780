"""What a host-sync trial keeps of what the probes saw."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from hybridwatch.analysis.subject import find_phase, list_statistics
from hybridwatch.measurement import load, phase
from hybridwatch.measurement.phase import SITES_KEPT, compute_host_work, measure, samples_of_waits
from hybridwatch.metrics import find_metric
from hybridwatch.records.run import Phase, Sample
from hybridwatch.records.trial_parts import CallSite, StepPhase

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


def test_waits_for_the_device_are_told_with_their_share_of_the_step():
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
    monkeypatch.setattr(load, "read_step_counts", lambda _server: None)
    return started


class Control:
    """Refuses whatever is no business of a timed trial."""

    def start_probe(self, name):
        raise AssertionError(f"probe {name} turned on")


def trial():
    server = SimpleNamespace(servers=())
    engine = SimpleNamespace(server=server, control=Control(), setting=None, settle=lambda _: None)
    scenario = SimpleNamespace(sweep=None, workload=SimpleNamespace(generation=None))
    return SimpleNamespace(engine=engine, scenario=scenario)


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
