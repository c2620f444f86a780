"""``python -m hybridwatch_lab.calibration.sweeps``: how often two made-up curves are judged right.

Engines whose steps grow with the number of requests go through the loads of a sweep. Their trials
scatter as a whole and point by point; the run goes through the same functions as a measured one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.metrics import CURVE_AREA
from hybridwatch.records.readings import compute_area, list_places
from hybridwatch.records.run import Curve, Phase, Point, Sample, Trial
from hybridwatch_lab.calibration.laboratory import write_page
from hybridwatch_lab.calibration.simulated import STARTED, build_run

LOADS: Final = (1, 2, 4, 8)
TRIALS: Final = 10
"""Of each side, as the shipped scenario counts them."""
REPORTS: Final = 100
_REQUESTS: Final = 8
_STEP_S: Final = 0.008
_GROWTH: Final = 0.25
"""How much longer a step takes for each request in it, as a share of an empty one."""
_NOISES: Final = (0.01, 0.03, 0.06)
"""Of a point; a whole trial scatters half as much besides."""

Pace = Callable[[float], float]
"""How long a step takes under a load, as a multiple of the other engine's."""


def even(_load: float) -> float:
    """An engine like the other one."""
    return 1.0


def slower(share: float) -> Pace:
    """Every step takes a share longer."""
    return lambda _load: 1 + share


def tilted(load: float) -> float:
    """Steps of one request take a tenth less, of eight a tenth longer."""
    return 0.9 + 0.2 * (load - 1) / 7


CHANGES: Final[Mapping[str, Pace]] = {
    "none": even,
    "steps 2 % longer": slower(0.02),
    "steps 6 % longer": slower(0.06),
    "steps 25 % longer": slower(0.25),
    "10 % shorter for one, 10 % longer for eight": tilted,
}


def made_up_curve(
    pace: Pace,
    hiccup: Callable[[], float],
    slo: Mapping[str, float] | None = None,
    joules: float | None = None,
) -> Curve:
    """Give one trial of an engine; ``joules``: per token of one request at a time."""
    points = []
    for load in LOADS:
        step = _STEP_S * (1 + _GROWTH * load) * pace(load) * hiccup()
        rate = 0.9 * load / step
        samples = (
            Sample("output_throughput", (rate,)),
            Sample("request_throughput", (rate / 32,)),
            Sample("ttft", (4 * step,) * _REQUESTS),
            Sample("tpot", (step,) * _REQUESTS),
        )
        points.append(Point(load, samples, None if joules is None else joules / load))
    return Curve("max_concurrency", tuple(points), slo=slo or {})


def simulated(pace: Pace, noise: float, rng: np.random.Generator) -> Report:
    """Judge one made-up run of two engines, the second of which has this pace."""
    trials = [
        _trial(2 * block + place, side, (even, pace)[side], noise, rng)
        for block in range(TRIALS)
        for place, side in enumerate((0, 1) if block % 2 == 0 else (1, 0))
    ]
    return build_report(build_run(tuple(trials)))


def _trial(index: int, side: int, pace: Pace, noise: float, rng: np.random.Generator) -> Trial:
    whole = float(np.exp(rng.normal(0, noise / 2)))
    curve = made_up_curve(pace, lambda: whole * float(np.exp(rng.normal(0, noise))))
    places = list_places(curve)
    assert places is not None  # noqa: S101 - every made-up point has its numbers
    samples = (Sample(CURVE_AREA, (compute_area(places),)),)
    return Trial(index, side, Phase.PERFORMANCE, STARTED, 1.0, samples=samples, curve=curve)


def page(seed: int, reports: int, on_progress: Callable[[str], None]) -> str:
    """Simulate every change at every noise, and write what came of it."""
    rows: list[str] = []
    for noise in _NOISES:
        for name, pace in CHANGES.items():
            on_progress(f"noise {noise:.0%}: {name}")
            rng = np.random.default_rng((seed, len(rows)))
            rows.append(_row(noise, name, [simulated(pace, noise, rng) for _ in range(reports)]))
    command = f"python -m hybridwatch_lab.calibration.sweeps --seed {seed} --reports {reports}"
    text = (
        f"{reports} runs a row, each of {TRIALS} trials a side over {len(LOADS)} loads. *Noise* is "
        "that of a point; a whole trial scatters half as much besides. *Regression*, *equivalent*, "
        "*improvement*: what `curve_area` is called, with its margin of 3 %; the rest is "
        "inconclusive. *Above*: which side is said to be above at some interactivity. *Cross*: "
        "the curves are said to cross."
    )
    header = (
        "| noise | change | regression | equivalent | improvement | baseline above "
        "| contender above | cross |\n|--:|---|--:|--:|--:|--:|--:|--:|"
    )
    written = f"Written by `{command} --write lab/docs/sweep-simulation.md`."
    return "\n".join(["# Sweeps, simulated\n", f"{written}\n", f"{text}\n", header, *rows]) + "\n"


def _row(noise: float, name: str, reports: list[Report]) -> str:
    found: Counter[str] = Counter()
    for report in reports:
        area = next(one for one in report.comparisons if one.metric.id == CURVE_AREA)
        found[area.verdict.value] += 1
        tradeoff = report.tradeoff
        if tradeoff is not None:
            found.update({stretch.better for stretch in tradeoff.stretches})
            found["cross"] += bool(tradeoff.crossings)
    verdicts = (Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.IMPROVEMENT)
    names = (*(one.value for one in verdicts), "baseline", "contender", "cross")
    shares = (f"{100 * found[one] / len(reports):.1f} %" for one in names)
    return f"| {' | '.join((f'{noise:.0%}', name, *shares))} |"


if __name__ == "__main__":
    write_page(__doc__, "reports", REPORTS, page)
