"""What host-sync trials tell of a side: reads by call site, time by phase, both step by step."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.records.run import Phase, Trial
from hybridwatch.records.trial_parts import HostWork

READS: Final = "host_syncs_per_step"
WAITS: Final = frozenset({"host_sync_time", "host_sync_share"})
BUILDS: Final = "metadata_build_time"


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the engine's code, in one side's trials together.

    Attributes:
        reads: Per step.
        seconds: Per step.
        kind: Of waits for a device, what most of them were.
    """

    reads: float
    seconds: float
    kind: str | None = None


NO_READS: Final = Site(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SideWork:
    """One side.

    Attributes:
        reads: Of each step of the first trial, in order.
        builds: Seconds of each build of metadata of the first trial, in order.
        sites: By place, over the trials that kept them; empty when none did.
        elsewhere: Reads per step of places that were not kept.
        phases: Seconds by phase, the median over those trials, in the order of a step.
    """

    build: str
    trials: int
    reads: tuple[float, ...]
    builds: tuple[float, ...]
    sites: dict[str, Site]
    elsewhere: float
    phases: dict[str, float]


def load_host_work(side: OneSide) -> SideWork:
    """Put together what the host-sync trials of a side tell."""
    trials = side.trials(Phase.HOST_SYNC)
    kept = [(trial, trial.host_work) for trial in trials if trial.host_work is not None]
    steps = sum(len(_values(trial, READS)) for trial, _ in kept)
    reads = sum(sum(_values(trial, READS)) for trial, _ in kept)
    sites = _sites([work for _, work in kept], steps)
    known = sum(site.reads for site in sites.values())
    first = trials[:1]
    return SideWork(
        build=side.build.label,
        trials=len(trials),
        reads=_values(first[0], READS) if first else (),
        builds=_values(first[0], BUILDS) if first else (),
        sites=sites,
        elsewhere=max(0.0, reads / steps - known) if steps else 0.0,
        phases=_phases([work for _, work in kept]),
    )


def _values(trial: Trial, metric: str) -> tuple[float, ...]:
    return next((sample.values for sample in trial.samples if sample.metric == metric), ())


def _sites(works: Sequence[HostWork], steps: int) -> dict[str, Site]:
    reads: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    kinds: dict[str, str | None] = {}
    for work in works:
        for site in work.sites:
            reads[site.place] += site.reads
            seconds[site.place] += site.seconds
            kinds[site.place] = kinds.get(site.place) or site.kind
    if not steps:
        return {}
    return {p: Site(reads[p] / steps, seconds[p] / steps, kinds[p]) for p in reads}


def _phases(works: Sequence[HostWork]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for work in works:
        for phase in work.phases:
            found[phase.name].append(phase.seconds)
    return {name: median(seconds) for name, seconds in found.items()}
