"""Two curves in words: where one is better, where they cross, goodput and energy."""

from collections.abc import Iterator, Mapping
from typing import Final

from hybridwatch.analysis.tradeoff import LoadPoint, SideCurve, Spread, Stretch, Tradeoff
from hybridwatch.analysis.wording import numbers
from hybridwatch.records.run import Clock

KNOBS: Final[Mapping[str, str]] = {
    "max_concurrency": "requests in flight",
    "request_rate": "requests per second",
}
"""What was turned, in words."""

_RATES: Final[Mapping[Clock, str]] = {"wall": "tok/s", "processor": "tok per processor second"}
_BOUNDS: Final[Mapping[str, str]] = {"ttft": "TTFT", "tpot": "TPOT"}


def tradeoff_lines(found: Tradeoff) -> tuple[str, ...]:
    """Say what two curves show besides the verdict on their area, a sentence each."""
    return (_where(found), *_goodput(found), *_energy(found))


def describe_output(curve: SideCurve) -> str:
    """Name the upright axis: per GPU, or of the engine where there is none."""
    return f"{_RATES[curve.clock]} {'per GPU' if curve.gpus else 'of the engine'}"


def describe_interactivity(curve: SideCurve) -> str:
    """Name the other axis: what one user gets."""
    return f"{_RATES[curve.clock]} per user"


def describe_objective(curve: SideCurve) -> str:
    """Write the objective: ``TTFT up to 100 ms and TPOT up to 15 ms``; empty without one."""
    bounds = (
        f"{name} up to {numbers.duration(curve.slo[metric])}"
        for metric, name in _BOUNDS.items()
        if metric in curve.slo
    )
    return " and ".join(bounds)


def rate(value: float) -> str:
    """Write tokens or requests per second with three digits, without the unit."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _where(found: Tradeoff) -> str:
    if found.common is None:
        return "The curves share no interactivity, so no place of one is beside one of the other."
    low, high = map(rate, found.common)
    unit = describe_interactivity(found.baseline)
    between = f"from {low} to {high} {unit}"
    if not found.stretches:
        return f"Neither curve is shown to be above the other anywhere {between}."
    if found.crossings:
        crossed = " and ".join(f"{rate(a)} and {rate(b)}" for a, b in found.crossings)
        start = f"The curves cross between {crossed} {unit}: "
        return start + ", ".join(map(_stretch, found.stretches)) + "."
    parts = ", ".join(map(_stretch, found.stretches))
    return f"Compared {between}, and nowhere do the curves cross: {parts}."


def _stretch(one: Stretch) -> str:
    return f"the {one.better} is above from {rate(one.low)} to {rate(one.high)}"


def _goodput(found: Tradeoff) -> Iterator[str]:
    best = [(side, side.best_goodput) for side in (found.baseline, found.contender)]
    known = [(side, point) for side, point in best if point is not None]
    if len(known) == len(best):
        yield f"Goodput with {describe_objective(found.baseline)}: " + _beside(
            [_best(side, point) for side, point in known]
        )


def _best(side: SideCurve, point: LoadPoint) -> str:
    if not _number(point.goodput):
        return "none at any load"
    return f"{_middle(point.goodput)} req/s at {_load(side, point)}"


def _energy(found: Tradeoff) -> Iterator[str]:
    least = []
    for side in (found.baseline, found.contender):
        told = [point for point in side.points if point.joules_per_token is not None]
        if not told:
            return
        point = min(told, key=lambda one: _number(one.joules_per_token))
        least.append(f"{_middle(point.joules_per_token)} J at {_load(side, point)}")
    yield f"Least energy per token: {_beside(least)}"


def _beside(sides: list[str]) -> str:
    return f"{sides[0]} (baseline), {sides[1]} (contender)."


def _load(side: SideCurve, point: LoadPoint) -> str:
    return f"{point.load:g} {KNOBS.get(side.knob, side.knob)}"


def _middle(spread: Spread | None) -> str:
    return rate(_number(spread))


def _number(spread: Spread | None) -> float:
    return 0.0 if spread is None else spread.middle
