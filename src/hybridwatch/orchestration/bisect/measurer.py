"""Measures a candidate: its contracts alone, or its times in turn with another build."""

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hybridwatch.analysis.machine_state import machine_doubts
from hybridwatch.analysis.pair import build_pair
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.subject import Subject, find_phase, list_sides
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import require_code, require_installed
from hybridwatch.errors import BuildError, EngineError, LateEngineError
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import ProgressCallback, SessionRequest
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.metrics import Metric, find_metric
from hybridwatch.orchestration.bisect.posterior import compute_effect
from hybridwatch.orchestration.bisect.question import (
    ExactQuestion,
    ProbeAnswer,
    ProbeOutcome,
    ProbeState,
    is_of_life,
)
from hybridwatch.records.run import Phase, Run
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.engine_log import find_root

_MINUTE: Final = 60.0
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class Measurer:
    """Measures builds with one scenario."""

    scenario: Scenario
    models: Path
    on_progress: ProgressCallback

    @property
    def at_once(self) -> int:
        """How many candidates' contracts can be measured at a time."""
        return 1

    def expect(self, makers: Sequence[Callable[[], str]]) -> None:
        """Ignore which contracts may be needed next: this measurer makes one session at a time."""

    def contracts(self, label: str) -> ProbeOutcome:
        """Count the broken contracts of one build."""
        return self._read(
            (label,), Phase.CONTRACT, 0, lambda run, minutes: parse_contracts(run, 0, minutes)
        )

    def clearest(self, first: str, label: str, verdict: Verdict, blocks: int) -> ProbeOutcome:
        """Time two builds, and keep what changed most clearly in one way, if anything did."""

        def read(run: Run, minutes: float) -> ProbeOutcome:
            if metric := _clearest(run, verdict):
                return timed_outcome(run, metric, minutes)
            label, state = run.builds[1].label, ProbeState.MEASURED
            return ProbeOutcome(state=state, label=label, run=run.id, minutes=minutes)

        return self._read((first, label), Phase.PERFORMANCE, blocks, read)

    def times(self, first: str, label: str, metric: str, blocks: int) -> ProbeOutcome:
        """Time one build next to another, block by block."""
        wanted = find_metric(metric)
        return self._read(
            (first, label),
            find_phase(wanted),
            blocks,
            lambda run, minutes: timed_outcome(run, wanted, minutes),
        )

    def session(self, labels: Collection[str], phases: Collection[Phase], blocks: int = 0) -> Run:
        """Measure one or two builds, with as many timed trials a side as the scenario when 0."""
        scenario = self.scenario
        if blocks:
            counts = {"performance": blocks, "host_sync": blocks}
            trials = scenario.trials.model_copy(update=counts)
            scenario = scenario.model_copy(update={"trials": trials})
        sides = tuple(_installed(label) for label in labels)
        # Which release stopped to serve it may be what the search is about.
        make_ready(scenario.without_bounds(), sides, self.models)
        return run_session(SessionRequest(scenario, sides, self.models, self.on_progress, phases))

    def _read(
        self,
        labels: tuple[str, ...],
        phase: Phase,
        blocks: int,
        read: Callable[[Run, float], ProbeOutcome],
    ) -> ProbeOutcome:
        """Measure; a build or an engine that fails is an outcome as well."""
        begin = time.monotonic()
        try:
            run = self.session(labels, {phase}, blocks)
        except (BuildError, LateEngineError) as error:
            return ProbeOutcome(state=ProbeState.NOT_HAD, reason=_line(str(error)))
        except EngineError as error:
            reason = find_root(error.log_tail) or str(error)
            return ProbeOutcome(
                state=ProbeState.NOT_UP, reason=_line(reason), minutes=_since(begin)
            )
        return read(run, _since(begin))


def parse_contracts(run: Run, side: int, minutes: float) -> ProbeOutcome:
    """Read the contracts of a side."""
    outcome = partial(ProbeOutcome, label=run.builds[side].label, run=run.id, minutes=minutes)
    failed = tuple(run.failed(side))
    if failed:
        first = failed[0].failure
        assert first is not None  # noqa: S101 - that is what failed means
        state = ProbeState.DIES if first.engine_died else ProbeState.NO_VALUE
        reason = (find_root(first.log_tail) if first.engine_died else None) or first.reason
        return outcome(state=state, reason=_line(reason))
    counts: dict[str, float] = {}
    for trial in run.measured(side):
        for sample in trial.samples:
            counts[sample.metric] = max(*sample.values, counts.get(sample.metric, 0.0))
    return outcome(state=ProbeState.MEASURED, counts=counts)


def timed_outcome(run: Run, metric: Metric, minutes: float) -> ProbeOutcome:
    """Read the blocks of a run of two sides."""
    outcome = partial(ProbeOutcome, label=run.builds[1].label, run=run.id, minutes=minutes)
    blocks = build_pair(Subject(metric, metric.kind.statistic), *list_sides(run)).blocks
    if blocks is None or not blocks.n or not blocks.has_ratios:
        failed = (*run.failed(0), *run.failed(1))
        reasons = [trial.failure.reason for trial in failed if trial.failure]
        reason = reasons[0] if reasons else f"no {metric.id} of both sides"
        died = any(trial.failure.engine_died for trial in failed if trial.failure)
        state = ProbeState.DIES if died else ProbeState.NO_VALUE
        return outcome(state=state, reason=_line(reason))
    phase = find_phase(metric)
    timed = [trial.duration_s for trial in run.trials if trial.phase is phase and not trial.warmup]
    return outcome(
        state=ProbeState.MEASURED,
        metric=metric.id,
        ratios=blocks.log_ratios,
        # Each block of a duet has engines of its own, whose start is no part of its trials.
        block_minutes=(minutes if phase is Phase.DUET else sum(timed) / _MINUTE) / blocks.n,
        doubts=machine_doubts(run),
    )


def _clearest(run: Run, verdict: Verdict) -> Metric | None:
    found = [
        one
        for one in build_report(run).comparisons
        if one.verdict is verdict
        and one.metric.hangs_on_the_clock
        and one.statistic == one.metric.kind.statistic
    ]
    best = min(found, key=lambda one: (one.p_value or 0.0, -abs(one.effect or 0.0)), default=None)
    return best.metric if best else None


def _installed(label: str) -> BuildRequest:
    request = parse_label(label)
    require_installed(request.spec)
    require_code(request)
    return request


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REASON]


def _since(begin: float) -> float:
    return round((time.monotonic() - begin) / _MINUTE, 3)


def render_value(metric: str, outcome: ProbeOutcome) -> str:
    """Say what a measurement of contracts gave."""
    match outcome.state:
        case ProbeState.NO_VALUE | ProbeState.MEASURED if is_of_life(metric):
            return "lives"
        case ProbeState.NOT_HAD | ProbeState.NO_VALUE:
            return f"{outcome.state.value}: {first_line(outcome.reason)}"
        case ProbeState.DIES | ProbeState.NOT_UP:
            why = f" ({first_line(outcome.reason)})" if outcome.reason else ""
            return f"{outcome.state.value}{why}"
        case ProbeState.MEASURED:
            if not metric:
                return "measured"
            return f"{outcome.counts[metric]:g}" if metric in outcome.counts else "no value"


def render_exact(question: ExactQuestion, outcome: ProbeOutcome, answer: ProbeAnswer) -> str:
    """Say what a measurement of contracts gave, and what follows."""
    values = render_value(question.metric, outcome)
    if answer is ProbeAnswer.SKIPPED:
        return f"skipped, {values}"
    return f"{values}, as the {'later' if answer is ProbeAnswer.CHANGED else 'earlier'} end"


def render_timed(outcome: ProbeOutcome) -> str:
    """Say what a measurement of times gave."""
    if outcome.state is not ProbeState.MEASURED:
        return f"skipped, {outcome.state.value}: {first_line(outcome.reason)}"
    size = compute_effect([outcome.ratios]).size
    return f"{render_change(size)} in {plural(len(outcome.ratios), 'block')}"


def render_unchanged(metric: str, first: ProbeOutcome, last: ProbeOutcome) -> str:
    """Say that the ends do not differ in the way that was wanted; an empty metric is everything."""
    values = " -> ".join(render_value(metric, one) for one in (first, last))
    return f"{metric or 'contracts'} did not change between the ends as wanted: {values}"


def render_change(log_ratio: float) -> str:
    """Write a log ratio as a change."""
    return f"{math.expm1(log_ratio):+.1%}"


def first_line(text: str) -> str:
    """Give the first line of a text, which may be empty."""
    return text.partition("\n")[0]
