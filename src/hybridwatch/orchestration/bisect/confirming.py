"""Measures the pair that a search ends with again, side by side, and keeps the record."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hybridwatch.analysis.subject import find_phase
from hybridwatch.errors import EngineError, LateEngineError
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.bisect.candidate import Candidate
from hybridwatch.orchestration.bisect.measurer import parse_contracts, timed_outcome
from hybridwatch.orchestration.bisect.outcome import ProbeOutcome, ProbeState
from hybridwatch.orchestration.bisect.outcome_words import timed_words, value_words
from hybridwatch.orchestration.bisect.posterior.exact import ProbeAnswer
from hybridwatch.orchestration.bisect.question import ExactQuestion, is_of_life
from hybridwatch.orchestration.bisect.search import BisectSearch, TimedQuestion, end_blocks
from hybridwatch.records.run import Phase, Run

_OK = (ProbeAnswer.UNCHANGED, ProbeAnswer.CHANGED)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The pair, measured again.

    Attributes:
        holds: Whether it differs as before.
        labels: The builds, as their engines reported them.
        record: Where the run is; empty of an engine that gave none.
        ratios: Log ratios of its blocks; of times.
    """

    holds: bool
    text: str
    labels: tuple[str, str]
    record: str
    ratios: tuple[float, ...] = ()


def confirm(
    search: BisectSearch,
    question: ExactQuestion | TimedQuestion,
    pair: tuple[Candidate, Candidate],
    keep: Callable[[Run], Path],
) -> Confirmation:
    """Measure the pair again.

    ``pair`` is the last candidate before the change, and the first behind it. ``keep`` stores a
    run, and gives the record's place.

    Raises:
        BuildError: A build is gone.
    """
    labels = pair[0].make(), pair[1].make()
    if isinstance(question, TimedQuestion):
        return _of_times(search, question, labels, keep)
    if is_of_life(question.metric):
        return _of_life(search, question, labels, keep)
    run = search.measurer.session(labels, {Phase.CONTRACT})
    ends = parse_contracts(run, 0, 0.0), parse_contracts(run, 1, 0.0)
    return _confirmed(question, ends, labels, str(keep(run)))


def _of_life(
    search: BisectSearch,
    question: ExactQuestion,
    labels: tuple[str, str],
    keep: Callable[[Run], Path],
) -> Confirmation:
    """Measure one after the other: the engine that dies must not take the other's run with it."""
    ends, record = [], ""
    for label in labels:
        try:
            run = search.measurer.session((label,), {Phase.CONTRACT})
        except LateEngineError as error:
            ends.append(ProbeOutcome(state=ProbeState.NOT_HAD, reason=str(error), label=label))
        except EngineError:
            ends.append(ProbeOutcome(state=ProbeState.NOT_UP, label=label))
        else:
            ends.append(parse_contracts(run, 0, 0.0))
            record = str(keep(run))
    return _confirmed(question, (ends[0], ends[1]), labels, record)


def _of_times(
    search: BisectSearch,
    question: TimedQuestion,
    labels: tuple[str, str],
    keep: Callable[[Run], Path],
) -> Confirmation:
    metric = find_metric(question.metric)
    run = search.measurer.session(labels, {find_phase(metric)}, end_blocks(metric.id))
    outcome = timed_outcome(run, metric, 0.0)
    record = str(keep(run))
    named = run.builds[0].label, run.builds[1].label
    if outcome.state is not ProbeState.MEASURED:
        return Confirmation(False, outcome.reason, named, record)
    holds = question.effect.is_changed(outcome.ratios)
    return Confirmation(holds, timed_words(outcome), named, record, outcome.ratios)


def _confirmed(
    question: ExactQuestion,
    ends: tuple[ProbeOutcome, ProbeOutcome],
    labels: tuple[str, str],
    record: str,
) -> Confirmation:
    answers = tuple(map(question.answer, ends))
    said = " -> ".join(value_words(question.metric, one) for one in ends)
    named = tuple(one.label or label for one, label in zip(ends, labels, strict=True))
    return Confirmation(answers == _OK, said, (named[0], named[1]), record)
