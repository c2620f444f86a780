"""Figures of a group of scenarios, each with the record that it was taken from.

For a page that anybody can check: nothing is in it that no record holds, and what no record holds
yet is owed, not guessed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from hybridwatch.analysis.control import Control, ControlKind, a_a_control, known_bad_control
from hybridwatch.analysis.machine_state import machine_doubts
from hybridwatch.analysis.pair import reduce_side
from hybridwatch.analysis.subject import OneSide, Subject, list_statistics
from hybridwatch.metrics import Kind, Metric, find_metric
from hybridwatch.records.identity import (
    AT_WORK,
    EngineBuild,
    FixState,
    Role,
    Testbed,
    lost_fixes,
    name_role,
)
from hybridwatch.records.run import Run
from hybridwatch.scenarios.fixes import FIX_PARTS
from hybridwatch.scenarios.load import digest
from hybridwatch.scenarios.scenario import Scenario

_SWITCHED: Final = frozenset({FixState.APPLIED, FixState.REVERTED})


@dataclass(frozen=True, slots=True)
class WantedFinding:
    """An engine whose figures are wanted.

    Attributes:
        release: The vLLM release.
        patched: Whether the scenario's fix must be in, and those that it requires besides,
            whoever put them there; else the engine is as released, with nothing switched.
    """

    release: str
    patched: bool = False

    @property
    def name(self) -> str:
        """For a person."""
        return f"{self.release} {'with the fix' if self.patched else 'as released'}"

    def is_met_by(self, build: EngineBuild, fixes: Sequence[str]) -> bool:
        """Whether an engine is the one that is meant."""
        if build.release != self.release or build.flags.get("planted"):
            return False
        variant = build.name.removeprefix(f"{build.accelerator}-{self.release}")
        if variant not in {build.name, "", "-patched", "-reverted"}:
            return False  # the user's own, with other variables or flags
        if not self.patched:
            return not _SWITCHED & set(build.fixes.values())
        found = {build.fixes.get(part) for fix in fixes for part in _parts(fix)}
        # A part that means nothing to a release is not missed in it.
        states = found - {None, FixState.NOT_APPLICABLE}
        return bool(states) and states <= AT_WORK


@dataclass(frozen=True, slots=True)
class WantedControl:
    """A control that is wanted."""

    release: str
    kind: ControlKind


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a page.

    Attributes:
        accelerator: On what the engines must have computed.
        out_of_reach: Releases into which a scenario's fix cannot be put, by its id.
    """

    engines: tuple[WantedFinding, ...]
    controls: tuple[WantedControl, ...]
    accelerator: str
    out_of_reach: Mapping[str, Collection[str]] = field(default_factory=dict)

    def can_have(self, scenario: Scenario, release: str) -> bool:
        """Whether the release comes up for the scenario, and can be had with its fix."""
        out_of_reach = self.out_of_reach.get(scenario.id, ())
        return scenario.starts_on(release) and release not in out_of_reach

    def can_have_figures(self, scenario: Scenario, wanted: WantedFinding) -> bool:
        """Whether there can be figures of an engine."""
        if wanted.patched:
            return self.can_have(scenario, wanted.release)
        return scenario.starts_on(wanted.release)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of figures; of an ``inverse`` one, one over the metric is shown."""

    name: str
    metrics: Callable[[str], bool]
    inverse: bool = False


ACCURACY: Final = Quantity("accuracy", lambda metric: metric.startswith("accuracy."))
QUANTITIES: Final = (
    ACCURACY,
    Quantity("output tokens per second", lambda metric: metric == "output_throughput"),
    Quantity("host syncs per step", lambda metric: metric == "host_syncs_per_step"),
    Quantity("step time", lambda metric: metric == "engine_step_rate", inverse=True),
)


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A run with the name of its record, answers included."""

    record: str
    run: Run


@dataclass(frozen=True, slots=True)
class GpuFigure:
    """A number with where it comes from.

    Attributes:
        value: Over the trials of one side, or over its documents; base units. Of an inverse
            quantity one over it.
        n: How many trials, or documents.
    """

    metric: Metric
    value: float
    n: int
    record: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One scenario on one engine.

    Attributes:
        figures: By the name of the quantity; empty where they are owed, and a quantity that the
            scenario or the engine cannot have is left out.
    """

    scenario: Scenario
    wanted: WantedFinding
    figures: Mapping[str, tuple[GpuFigure, ...]]


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """A control of a scenario: ``None`` while it is owed, impossible without a healthy engine."""

    scenario: Scenario
    wanted: WantedControl
    control: Control | None = None
    record: str = ""
    possible: bool = True

    @property
    def is_owed(self) -> bool:
        """Whether it can still be made."""
        return self.control is None and self.possible


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything there is from one testbed; ``testbed`` is ``None`` without a record."""

    testbed: Testbed | None
    rows: tuple[FindingRow, ...]
    controls: tuple[JudgedFinding, ...]
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def owed(self) -> int:
        """How many figures and controls no record holds."""
        figures = sum(not found for row in self.rows for found in row.figures.values())
        return figures + sum(judged.is_owed for judged in self.controls)


def gather_evidence(
    scenarios: Sequence[Scenario], kept: Sequence[KeptFinding], questions: Questions
) -> tuple[Evidence, ...]:
    """Gather the figures of current scenarios from records; of two records the newer counts.

    ``scenarios``: in the order of the page. ``kept``: runs of any scenario; those of another one,
    or of an older version, do not count.

    Returns:
        One for each testbed, by its id; a single empty one without any record.
    """
    digests = {scenario.id: digest(scenario) for scenario in scenarios}
    current = [
        one
        for one in sorted(kept, key=lambda one: one.run.started_at, reverse=True)
        if digests.get(one.run.scenario.id) == one.run.scenario.digest
        and all(build.accelerator == questions.accelerator for build in one.run.builds)
    ]
    by_testbed: dict[str, list[KeptFinding]] = {}
    for one in current:
        by_testbed.setdefault(one.run.testbed.id, []).append(one)
    return tuple(
        _evidence(scenarios, by_testbed.get(testbed, []), questions)
        for testbed in sorted(by_testbed) or [""]
    )


def _evidence(
    scenarios: Sequence[Scenario], kept: Sequence[KeptFinding], questions: Questions
) -> Evidence:
    rows = tuple(
        FindingRow(
            scenario,
            wanted,
            dict(_figures(scenario, wanted, kept))
            if questions.can_have_figures(scenario, wanted)
            else {},
        )
        for scenario in scenarios
        for wanted in questions.engines
        if scenario.needed_fixes or not wanted.patched
    )
    judged = tuple(
        _judged(scenario, wanted, kept)
        if questions.can_have(scenario, wanted.release)
        else JudgedFinding(scenario, wanted, possible=False)
        for scenario in scenarios
        for wanted in questions.controls
        if scenario.has_known_bad
    )
    remarks = {one.record: tuple(_remarks(one.run)) for one in kept}
    return Evidence(kept[0].run.testbed if kept else None, rows, judged, remarks)


def _figures(
    scenario: Scenario, wanted: WantedFinding, kept: Sequence[KeptFinding]
) -> Iterator[tuple[str, tuple[GpuFigure, ...]]]:
    sides = [
        (one.record, OneSide(one.run, index))
        for one in kept
        if one.run.scenario.id == scenario.id
        for index, build in enumerate(one.run.builds)
        if wanted.is_met_by(build, scenario.needed_fixes)
    ]
    for quantity in QUANTITIES:
        if quantity is ACCURACY and scenario.accuracy is None:
            continue
        figures = (tuple(_read_figures(record, side, quantity)) for record, side in sides)
        yield quantity.name, next(filter(None, figures), ())


def _read_figures(record: str, side: OneSide, quantity: Quantity) -> Iterator[GpuFigure]:
    """One side's figures of a quantity, one for each of its metrics."""
    held = {sample.metric for trial in side.run.measured(side.index) for sample in trial.samples}
    for name in sorted(filter(quantity.metrics, held)):
        metric = find_metric(name)
        values = reduce_side(side, Subject(metric, list_statistics(metric)[0])).values
        if values:
            center = (fmean if metric.kind is Kind.PROPORTION else median)(values)
            shown = 1 / center if quantity.inverse and center else center
            yield GpuFigure(metric, shown, len(values), record)


def _judged(
    scenario: Scenario, wanted: WantedControl, kept: Sequence[KeptFinding]
) -> JudgedFinding:
    judge = known_bad_control if wanted.kind is ControlKind.KNOWN_BAD else a_a_control
    for one in kept:
        if one.run.scenario.id == scenario.id and _is_control(one.run, scenario, wanted):
            return JudgedFinding(scenario, wanted, judge(scenario, one.run, 0, 1), one.record)
    return JudgedFinding(scenario, wanted)


def _is_control(run: Run, scenario: Scenario, wanted: WantedControl) -> bool:
    """Whether a run's baseline has what the scenario needs, and its contender has it or lost it."""
    healthy = WantedFinding(wanted.release, patched=True)
    if len(run.builds) != 2 or not healthy.is_met_by(run.builds[0], scenario.needed_fixes):
        return False
    if any(build.flags.get("planted") for build in run.builds):
        return False
    role = name_role(*run.builds, known_bad=run.known_bad)
    if wanted.kind is ControlKind.A_A:
        return role is Role.A_A
    lost = lost_fixes(*(build.fixes for build in run.builds)) if role is Role.KNOWN_BAD else ()
    return bool({*_parts(scenario.fix)} & {*lost})


def _parts(fix: str) -> tuple[str, ...]:
    return FIX_PARTS.get(fix, (fix,))


def _remarks(run: Run) -> Iterator[str]:
    for layout in dict.fromkeys(build.flags.get("stand_in") for build in run.builds):
        if layout:
            yield f"Not laid out as the scenario says, but {layout}."
    yield from machine_doubts(run)
