"""What a scenario expects of a healthy engine, held against one side of a run."""

from collections.abc import Iterator, Mapping
from statistics import fmean

from hybridwatch.record.run import Run
from hybridwatch.scenario.scenario import Expect


def broken_expectations(run: Run, side: int, expect: Expect) -> tuple[str, ...]:
    """List what a side did not fulfil, one line each; empty when it is as expected.

    Args:
        run: The run.
        side: Index of the build to look at.
        expect: The scenario's expectations; a metric without a value breaks its expectation.
    """
    values = _values(run, side)
    reasons = {m: why for trial in run.measured(side) for m, why in trial.unsupported.items()}
    return (
        *_broken(values, reasons, expect.exactly, "exactly", exact=True),
        *_broken(values, reasons, expect.at_least, "at least", exact=False),
    )


def _values(run: Run, side: int) -> Mapping[str, list[float]]:
    collected: dict[str, list[float]] = {}
    for trial in run.measured(side):
        for sample in trial.samples:
            collected.setdefault(sample.metric, []).extend(sample.values)
    return collected


def _broken(
    values: Mapping[str, list[float]],
    reasons: Mapping[str, str],
    bounds: Mapping[str, float],
    words: str,
    *,
    exact: bool,
) -> Iterator[str]:
    for metric, bound in bounds.items():
        found = values.get(metric)
        if not found:
            why = f" ({reasons[metric]})" if metric in reasons else ""
            yield f"{metric}: expected {words} {bound:g}, found no value{why}"
        elif exact and any(value != bound for value in found):
            worst = max(found, key=lambda value: abs(value - bound))
            yield f"{metric}: expected {words} {bound:g}, found {worst:g}"
        elif not exact and fmean(found) < bound:
            yield f"{metric}: expected {words} {bound:g}, found {fmean(found):.4g}"
