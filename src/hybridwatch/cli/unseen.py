"""What a verb did not look at, or could not have seen, and what it would take."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hybridwatch.analysis.change_review import Blindness, find_blindness
from hybridwatch.analysis.policy import STRICT
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.labels import MOST_TRIALS
from hybridwatch.cli.outcome import RunOutcome
from hybridwatch.cli.program import program, with_results
from hybridwatch.measurement.plan import TIMED_PHASES, USUAL_PHASES
from hybridwatch.records.run import Phase
from hybridwatch.reports.reason_text import blind_sentence, settling

NAMES: Final = {
    Phase.CONTRACT: "contracts",
    Phase.ACCURACY: "answers",
    Phase.PERFORMANCE: "times",
    Phase.HOST_SYNC: "host reads",
    Phase.DUET: "duets",
}
"""What is looked at in each phase."""
_MARGINS: Final = 1.0
"""A change of more than its margin that would have passed unseen is told."""
_MINUTE: Final = 60.0


def looked_at(outcomes: Sequence[RunOutcome]) -> tuple[Phase, ...]:
    """Name the phases of which there is a trial that did not fail."""
    made = {trial.phase for one in outcomes for trial in one.run.trials if trial.failure is None}
    return tuple(phase for phase in Phase if phase in made)


def not_looked_at(outcomes: Sequence[RunOutcome]) -> tuple[Phase, ...]:
    """Name the usual phases of which there is none."""
    made = looked_at(outcomes)
    return tuple(phase for phase in USUAL_PHASES if phase not in made)


def unseen(outcomes: Sequence[RunOutcome], labels: Sequence[str], results: Path) -> Iterator[str]:
    """Yield what was timed and could not have been seen, and what it would take to see it.

    Args:
        outcomes: Of runs of two builds.
        labels: The builds.
        results: The folder that got the records.
    """
    timed = [one for one in outcomes if set(TIMED_PHASES) & set(looked_at([one]))]
    reports = tuple(one.report for one in timed if one.report is not None)
    blind = find_blindness(reports, STRICT, beyond=_MARGINS)
    if not blind.spots:
        return
    yield blind_sentence(blind, lambda report: report.scenario.id)
    yield f"it would take {settling(blind)}{_minutes(timed, blind)}"
    if Phase.DUET not in looked_at(timed):
        worst = blind.spots[-1].report.scenario.id
        builds = "".join(f" --build {label}" for label in labels)
        command = f"{program()} run {worst}{builds} --phases duet{with_results(results)}"
        yield f"or, where others use the machine, processor time: {command}"


def _minutes(timed: Sequence[RunOutcome], blind: Blindness) -> str:
    """Say how long the trials take that would settle it, as far as that is known."""
    if blind.trials_needed is None or blind.trials_needed > MOST_TRIALS:
        return ""
    seconds = sum(_round_s(one) * _needed(one.report, blind) for one in timed)
    return f": some {max(1.0, seconds / _MINUTE):.0f} min (--max-minutes)"


def _needed(report: Report | None, blind: Blindness) -> int:
    """Trials a side that one report needs."""
    own = (spot.comparison.trials_needed for spot in blind.spots if spot.report is report)
    return max((needed or 0 for needed in own), default=0)


def _round_s(outcome: RunOutcome) -> float:
    """Seconds of a timed trial of each side, of every phase that is timed."""
    trials = [one for one in outcome.run.trials if one.phase in TIMED_PHASES and not one.warmup]
    rounds = max(
        sum(one.phase is phase and one.side == 0 for one in trials) for phase in TIMED_PHASES
    )
    return sum(one.duration_s for one in trials) / max(rounds, 1)
