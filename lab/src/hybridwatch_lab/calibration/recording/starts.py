"""``python -m hybridwatch_lab.calibration.recording.starts``: how much starts of one build differ.

Two processes of one build may be faster or slower for as long as they live (memory layout, order of
compilation), which no number of trials tells from a change of the code (Kalibera and Jones,
"Rigorous Benchmarking in Reasonable Time", ISMM 2013). One engine lives all along, another is
started again and again beside it, and both are timed in turn by blocks, so that what the machine
does meets both. Of the logarithms of their ratios, those of one start scatter as trials do; what
the means of starts differ by beyond that is the luck of a start.

It takes an engine's start and a few trials for each, on a GPU as on a CPU.
"""

import argparse
import json
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, variance
from typing import Final

from scipy import stats

from hybridwatch.engines.builds import DEFAULT_BUILD, BuildRequest, parse_label
from hybridwatch.engines.fitting import cuda_numbers
from hybridwatch.errors import HybridwatchError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.machine_state import Gpus
from hybridwatch.measurement.phase import measure
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

_SCENARIO: Final = "smoke/single-token-extend"
_STARTS: Final = 20
_BLOCKS: Final = 6
_LASTING, _STARTED = 0, 1
"""Sides: the engine that lives all along, and the one that is started again."""
_LEVEL: Final = 0.05


@dataclass(frozen=True, slots=True)
class StartBlock:
    """A trial of each engine, one after the other.

    Attributes:
        start: Which start it belongs to, from 0.
        ratios: Logarithm of the started engine's number over the lasting one's, by metric; of a
            trial's samples the median counts.
    """

    start: int
    ratios: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StartNoise:
    """How much a metric differs from start to start.

    Attributes:
        starts: How many were compared.
        trials: Standard deviation of a block's logarithm within a start.
        luck: The same between starts, beyond what trials explain; 0 where they explain all.
        low: Lower end of its 95 % interval, by the F law of a one-way layout.
        high: Upper end.
    """

    metric: str
    starts: int
    trials: float
    luck: float
    low: float
    high: float


def estimate(blocks: Iterable[StartBlock]) -> list[StartNoise]:
    """Estimate how much starts differ, metric by metric; each start has as many blocks.

    Starts whose numbers are not all there are left out, and metrics of fewer than two starts.
    """
    by_metric: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for block in blocks:
        for metric, ratio in block.ratios.items():
            by_metric[metric][block.start].append(ratio)
    found = []
    for metric, starts in by_metric.items():
        most = max(map(len, starts.values()))
        whole = [ratios for ratios in starts.values() if len(ratios) == most]
        if most > 1 and len(whole) > 1:
            found.append(_noise(metric, whole))
    return found


def _noise(metric: str, starts: list[list[float]]) -> StartNoise:
    count, blocks = len(starts), len(starts[0])
    within = fmean(map(variance, starts))
    of_means = variance(map(fmean, starts))
    quantiles = (1 - _LEVEL / 2, 0.5, _LEVEL / 2)
    degrees = count - 1, count * (blocks - 1)
    # The middle is the plain estimate; the ends divide by what the ratio of variances may be.
    low, _, high = (of_means / float(stats.f.ppf(q, *degrees)) for q in quantiles)
    luck, low, high = (
        math.sqrt(max(0.0, each - within / blocks)) for each in (of_means, low, high)
    )
    return StartNoise(metric, count, math.sqrt(within), luck, low, high)


@dataclass(frozen=True, slots=True)
class StartRecording:
    """What to record."""

    scenario: Scenario
    side: BuildRequest
    starts: int
    blocks: int


def record_starts(wanted: StartRecording) -> Iterator[StartBlock]:
    """Start an engine again and again beside one that lives, and give each block when it is made.

    Before the blocks of a start each engine serves the load once, which does not count.
    """
    sides = (wanted.side, wanted.side)
    make_ready(wanted.scenario, (wanted.side,), home() / "models")
    gpus = cuda_numbers(Gpus.of(sides).devices)
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        work, models = Path(folder), home() / "models"
        with EnginePool(wanted.scenario, sides, models, work, print, gpus, apart=True) as pool:
            for start in range(wanted.starts):
                if start:
                    pool.retire(_STARTED)
                for side in (_LASTING, _STARTED):
                    pool.make_ready(side)
                    pool.client(side).make_ready()
                    _time(pool, side, work, 0)
                for block in range(wanted.blocks):
                    order = (_LASTING, _STARTED) if block % 2 == 0 else (_STARTED, _LASTING)
                    found = {side: _time(pool, side, work, block) for side in order}
                    yield StartBlock(start, _ratios(found[_LASTING], found[_STARTED]))


def _time(pool: EnginePool, side: int, work: Path, number: int) -> dict[str, float]:
    pool.make_ready(side)
    context = TrialContext(pool, side, work, number, lambda: None)
    samples = measure(Phase.PERFORMANCE, context).samples
    return {one.metric: median(one.values) for one in samples if one.values and not one.statistic}


def _ratios(lasting: Mapping[str, float], started: Mapping[str, float]) -> dict[str, float]:
    both = [name for name in lasting if lasting[name] > 0 and started.get(name, 0.0) > 0]
    return {name: math.log(started[name] / lasting[name]) for name in both}


def read_blocks(file: Path) -> list[StartBlock]:
    """Read what ``--record`` wrote."""
    return [StartBlock(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def show(found: Iterable[StartNoise]) -> str:
    """Write the estimates as a Markdown table, in per cent."""
    lines = [
        "| metric | starts | a block scatters by | starts differ by | 95 % |",
        "|---|--:|--:|--:|--:|",
    ]
    for one in found:
        numbers = [f"{100 * each:.2f} %" for each in (one.trials, one.luck, one.low, one.high)]
        lines.append(
            f"| {one.metric} | {one.starts} | {numbers[0]} | {numbers[1]} "
            f"| {numbers[2]} to {numbers[3]} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Record, unless the file is to be read alone, and write the table; 1 if it failed."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch_lab.calibration.recording.starts",
        description="Measure how much starts of one build differ.",
    )
    parser.add_argument("file", type=Path, help="JSON lines, one a block; new ones are added")
    parser.add_argument("--scenario", default=_SCENARIO, help=f"default: {_SCENARIO}")
    parser.add_argument("--build", default=DEFAULT_BUILD, help=f"default: {DEFAULT_BUILD}")
    parser.add_argument("--starts", type=int, default=_STARTS, help=f"0 to read only; {_STARTS}")
    parser.add_argument("--blocks", type=int, default=_BLOCKS, help=f"of a start; {_BLOCKS}")
    options = parser.parse_args()
    try:
        if options.starts:
            (scenario,) = find(home() / "scenarios", (options.scenario,))
            side = parse_label(options.build)
            wanted = StartRecording(scenario, side, options.starts, options.blocks)
            with stoppable(), options.file.open("a", encoding="utf-8") as lines:
                for block in record_starts(wanted):
                    lines.write(json.dumps(asdict(block)) + "\n")
                    lines.flush()
        sys.stdout.write(show(estimate(read_blocks(options.file))))
    except HybridwatchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
