"""A stored run as a page needs it: with its report, each trial's values, and its host's work."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.subject import OneSide, Subject, list_subjects
from hybridwatch.analysis.verdict import Report
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.records.readings import without_results
from hybridwatch.records.run import HostWork, Phase, Run, Trial
from hybridwatch.records.store import Broken, read_run


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored run with its report; without one, ``trouble`` says why in one line."""

    path: Path
    run: Run
    report: Report | None
    trouble: str = ""


def load_entry(path: Path) -> Entry | Broken:
    """Read one record and judge it, without its answers; the report keeps those that flipped."""
    try:
        run = read_run(path)
    except RecordError as error:
        return Broken(path, str(error).removeprefix(f"{path}: "))
    try:
        return Entry(path, _slim(run), build_report(run))
    except HybridwatchError as error:
        return Entry(path, _slim(run), None, str(error))


def _slim(run: Run) -> Run:
    def slim(trial: Trial) -> Trial:
        curve = None if trial.curve is None else without_results(trial.curve)
        return replace(trial, answers=(), client_result=None, curve=curve)

    return replace(run, trials=tuple(map(slim, run.trials)))


@dataclass(frozen=True, slots=True)
class SideTrials:
    """One metric of one side (0: baseline), in base units; of a proportion each trial's share."""

    side: int
    build: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the values."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Trials:
    """One metric of one run; of ``sides``, the baseline first, one without a value is left out."""

    subject: Subject
    entry: Entry
    sides: tuple[SideTrials, ...]


def load_trials(entry: Entry) -> list[Trials]:
    """Lay out every metric that a run measured, in the order of a report; one build is enough."""
    run = entry.run
    sides = [OneSide(run, side) for side in range(len(run.builds))]
    return [
        Trials(subject, entry, tuple(_values(sides, subject)))
        for subject in list_subjects(sides[0], sides[-1])
    ]


def _values(sides: Iterable[OneSide], subject: Subject) -> Iterator[SideTrials]:
    for side in sides:
        if values := tuple(reduce_side(side, subject).by_trial.values()):
            yield SideTrials(side.index, side.build.label, values)


READS: Final = "host_syncs_per_step"
WAITS: Final = frozenset({"host_sync_time", "host_sync_share"})
BUILDS: Final = "metadata_build_time"


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the engine's code; per step, and what most of its waits for a device were."""

    reads: float
    seconds: float
    kind: str | None = None


NO_READS: Final = Site(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SideWork:
    """The host's work of one side.

    ``reads`` are those of each step of the first trial, ``builds`` the seconds of each of its
    builds of metadata, in order. ``sites`` are by place, over the trials that kept them;
    ``elsewhere`` are reads per step of places that were not kept. ``phases`` are seconds, the
    median over those trials, in the order of a step.
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
    steps = sum(len(_values_of(trial, READS)) for trial, _ in kept)
    reads = sum(sum(_values_of(trial, READS)) for trial, _ in kept)
    sites = _sites([work for _, work in kept], steps)
    known = sum(site.reads for site in sites.values())
    first = trials[:1]
    return SideWork(
        build=side.build.label,
        trials=len(trials),
        reads=_values_of(first[0], READS) if first else (),
        builds=_values_of(first[0], BUILDS) if first else (),
        sites=sites,
        elsewhere=max(0.0, reads / steps - known) if steps else 0.0,
        phases=_phases([work for _, work in kept]),
    )


def _values_of(trial: Trial, metric: str) -> tuple[float, ...]:
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
