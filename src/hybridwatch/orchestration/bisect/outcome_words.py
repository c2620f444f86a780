"""One measurement in a few words."""

import math

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.orchestration.bisect.outcome import ProbeOutcome, ProbeState
from hybridwatch.orchestration.bisect.posterior.exact import ProbeAnswer
from hybridwatch.orchestration.bisect.posterior.timed import compute_effect
from hybridwatch.orchestration.bisect.question import ExactQuestion, is_of_life


def value_words(metric: str, outcome: ProbeOutcome) -> str:
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


def exact_words(question: ExactQuestion, outcome: ProbeOutcome, answer: ProbeAnswer) -> str:
    """Say what a measurement of contracts gave, and what follows."""
    said = value_words(question.metric, outcome)
    if answer is ProbeAnswer.SKIPPED:
        return f"skipped, {said}"
    return f"{said}, as the {'later' if answer is ProbeAnswer.CHANGED else 'earlier'} end"


def timed_words(outcome: ProbeOutcome) -> str:
    """Say what a measurement of times gave."""
    if outcome.state is not ProbeState.MEASURED:
        return f"skipped, {outcome.state.value}: {first_line(outcome.reason)}"
    size = compute_effect([outcome.ratios]).size
    return f"{change_words(size)} in {plural(len(outcome.ratios), 'block')}"


def unchanged_words(metric: str, first: ProbeOutcome, last: ProbeOutcome) -> str:
    """Say that the ends do not differ in the way that was wanted; an empty metric is everything."""
    said = " -> ".join(value_words(metric, one) for one in (first, last))
    return f"{metric or 'contracts'} did not change between the ends as wanted: {said}"


def change_words(log_ratio: float) -> str:
    """Write a log ratio as a change."""
    return f"{math.expm1(log_ratio):+.1%}"


def first_line(text: str) -> str:
    """Give the first line of a text, which may be empty."""
    return text.partition("\n")[0]
