"""What a host-sync trial keeps of what the probes saw."""

from hybridwatch.measure.phase import SITES_KEPT, host_work_of
from hybridwatch.record.run import CallSite, StepPhase


def test_the_busiest_sites_are_kept_and_phases_that_took_time():
    reads = {f"a.py:f:{line:02}": line for line in range(1, 31)}
    seen = {"sites": reads, "site_seconds": {site: count / 1e3 for site, count in reads.items()}}
    work = host_work_of(seen, {"prepare": [0.1, 0.4, 0.2], "draft": [0.0, 0.0, 0.0]})
    assert len(work.sites) == SITES_KEPT
    assert work.sites[0] == CallSite("a.py:f:30", 30, 0.03)
    assert work.sites[-1].reads == 11
    assert work.phases == (StepPhase("prepare", 0.2),)


def test_sites_of_as_many_reads_are_in_one_order():
    seen = {"sites": {"b": 2, "a": 2}, "site_seconds": {"a": 0.1, "b": 0.2}}
    assert [site.place for site in host_work_of(seen, {}).sites] == ["a", "b"]
