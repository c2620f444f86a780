"""What killed a mutant: the suite's own judgement of the healthy engine against the mutated one.

Nothing here knows a metric by name, so a new one counts as soon as trials have it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hybridwatch.analysis.control import ENGINE_DIED
from hybridwatch.analysis.report import broken_expectations, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metrics import Kind
from hybridwatch.records.run import Run, Trial
from hybridwatch.scenarios.fixes import Mutant
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch_lab.mutants.table import MutantState

TIMEOUT = "timeout"
FAILED_TRIAL = "failed_trial"
NO_ANSWER_IN_TIME = "no answer in time"
"""How the reason of a trial begins that was ended by its limit."""

_BASELINE, _CONTENDER = 0, 1


@dataclass(frozen=True, slots=True)
class Kill:
    """What shows a mutant."""

    metrics: tuple[str, ...]
    detail: str

    def __bool__(self) -> bool:
        """Whether anything shows it."""
        return bool(self.metrics)


SURVIVAL = Kill((), "")


def find_kill(
    scenario: Scenario, run: Run, healthy: Sequence[Trial], mutated: Sequence[Trial]
) -> Kill:
    """Say what shows a mutant, by the verdicts that a comparison of two builds would give.

    Args:
        scenario: What was run, with what it expects.
        run: Who, where and when; its trials do not matter.
        healthy: Trials of the engine without the mutant, at least those phases of ``mutated``.
        mutated: Trials with it.
    """
    for trial in mutated:
        if trial.failure is not None:
            return Kill((_name_failure(trial),), trial.failure.reason)
    phases = {trial.phase for trial in mutated}
    sides = [
        *(replace(trial, side=_BASELINE) for trial in healthy if trial.phase in phases),
        *(replace(trial, side=_CONTENDER) for trial in mutated),
    ]
    trials = tuple(replace(trial, index=index) for index, trial in enumerate(sides))
    both = replace(run, builds=(run.builds[0], run.builds[0]), trials=trials)
    report = report_between(OneSide(both, _BASELINE), OneSide(both, _CONTENDER))
    # What the healthy engine breaks as well is not the mutant's doing.
    news = (one for one in report.bad_news if not _is_as_bad_before(one))
    found = sorted(news, key=lambda one: one.metric.kind is not Kind.EXACT)
    lines = [_line(one) for one in found]
    known = {line.partition(":")[0] for line in _unexpected(scenario, both, _BASELINE)}
    unexpected = [
        line
        for line in _unexpected(scenario, both, _CONTENDER)
        if line.partition(":")[0] not in known
    ]
    names = [one.metric.id for one in found] + [line.partition(":")[0] for line in unexpected]
    return Kill(tuple(dict.fromkeys(names)), "; ".join(lines or unexpected))


def find_state(
    mutant: Mutant, kill: Kill, reached: int | None, changed: int | None, *, measured: bool = True
) -> MutantState:
    """Say what became of a mutant; ``reached`` and ``changed`` are None when they are unknown."""
    if reached == 0:
        return MutantState.NOT_REACHED  # what was seen then is not its doing
    if kill:
        return MutantState.KILLED
    if changed == 0 or mutant.equivalent:
        return MutantState.EQUIVALENT
    return MutantState.SURVIVED if measured else MutantState.NOT_MEASURED


def _name_failure(trial: Trial) -> str:
    assert trial.failure is not None  # noqa: S101 - checked by kill_of
    if trial.failure.reason.startswith(NO_ANSWER_IN_TIME):
        return TIMEOUT
    return ENGINE_DIED if trial.failure.engine_died else FAILED_TRIAL


def _unexpected(scenario: Scenario, run: Run, side: int) -> Iterator[str]:
    """What the scenario expects of the metrics that were measured, and did not find."""
    seen = {s.metric for trial in run.measured(side) for s in trial.samples}
    for line in broken_expectations(run, side, scenario.expect):
        if line.partition(":")[0] in seen:
            yield line


def _is_as_bad_before(comparison: Comparison) -> bool:
    left, right = comparison.baseline, comparison.contender
    if comparison.verdict is Verdict.BROKEN:
        return True
    return left is not None and right is not None and left.center == right.center


def _line(comparison: Comparison) -> str:
    left, right = comparison.baseline, comparison.contender
    name = comparison.metric.id
    if left is None or right is None or comparison.verdict is not Verdict.REGRESSION:
        return f"{name}: {comparison.verdict.value}"
    return f"{name} {left.center:g} -> {right.center:g}"
