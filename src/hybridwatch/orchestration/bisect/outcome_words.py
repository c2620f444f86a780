"""One measurement in a few words."""

import math

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.orchestration.bisect.outcome import Outcome, State
from hybridwatch.orchestration.bisect.posterior.exact import Answer
from hybridwatch.orchestration.bisect.posterior.timed import effect_of
from hybridwatch.orchestration.bisect.question import Question, is_of_life


def value_words(metric: str, outcome: Outcome) -> str:
    """Say what a measurement of contracts gave."""
    match outcome.state:
        case State.NO_VALUE | State.MEASURED if is_of_life(metric):
            return "lives"
        case State.NOT_HAD | State.NO_VALUE:
            return f"{outcome.state.value}: {first_line(outcome.reason)}"
        case State.DIES | State.NOT_UP:
            why = f" ({first_line(outcome.reason)})" if outcome.reason else ""
            return f"{outcome.state.value}{why}"
        case State.MEASURED:
            if not metric:
                return "measured"
            return f"{outcome.counts[metric]:g}" if metric in outcome.counts else "no value"


def exact_words(question: Question, outcome: Outcome, answer: Answer) -> str:
    """Say what a measurement of contracts gave, and what follows."""
    said = value_words(question.metric, outcome)
    if answer is Answer.SKIPPED:
        return f"skipped, {said}"
    return f"{said}, as the {'later' if answer is Answer.CHANGED else 'earlier'} end"


def timed_words(outcome: Outcome) -> str:
    """Say what a measurement of times gave."""
    if outcome.state is not State.MEASURED:
        return f"skipped, {outcome.state.value}: {first_line(outcome.reason)}"
    size = effect_of([outcome.ratios]).size
    return f"{change_words(size)} in {plural(len(outcome.ratios), 'block')}"


def unchanged_words(metric: str, first: Outcome, last: Outcome) -> str:
    """Say that the ends do not differ in the way that was wanted.

    Args:
        metric: What was looked at; empty for everything.
        first: Of the earlier end.
        last: Of the later end.
    """
    said = " -> ".join(value_words(metric, one) for one in (first, last))
    return f"{metric or 'contracts'} did not change between the ends as wanted: {said}"


def change_words(log_ratio: float) -> str:
    """Write a log ratio as a change."""
    return f"{math.expm1(log_ratio):+.1%}"


def first_line(text: str) -> str:
    """Give the first line of a text, which may be empty."""
    return text.partition("\n")[0]
