"""Whether an idle Ray beside an engine costs it anything: an A/A, interleaved with and without.

::

    python -m tests.engine.idle_raylet --blocks 10

Each block is two runs of one build's times, one of them beside an idle head and host of Ray, in
turn first and second. What is said is the ratio of the output throughput with Ray to that without,
block by block, with the 95 % interval of its geometric mean. It needs a machine that does nothing
else.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from scipy import stats

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.subject import Subject
from hybridwatch.metric import metric_of
from hybridwatch.store import list_records, read_run
from tests.unit.fleet.on_ray import Nodes

_LEAST = 3


def throughput(scenario: str, build: str, trials: int) -> float:
    """Measure, and give the median of a run's tokens per second."""
    with tempfile.TemporaryDirectory() as results:
        words = ["run", scenario, "--build", build, "--phases", "performance"]
        words += ["--trials", str(trials), "--results", results]
        subprocess.run([sys.executable, "-m", "hybridwatch", *words], check=True)
        (record,) = list_records(Path(results))
        subject = Subject(metric_of("output_throughput"), "median")
        return float(np.median(reduce_side(OneSide(read_run(record), 0), subject).values))


def beside_ray(measure: Callable[[], float]) -> float:
    """Measure while a head and a host have nothing to do."""
    nodes = Nodes(1)
    try:
        return measure()
    finally:
        nodes.stop()


@click.command()
@click.option("--blocks", type=click.IntRange(_LEAST), default=10, show_default=True)
@click.option("--scenario", default="smoke/padded-graph-rows", show_default=True)
@click.option("--build", default="cpu-0.27.1", show_default=True)
@click.option("--trials", type=click.IntRange(7), default=20, show_default=True)
def main(blocks: int, scenario: str, build: str, trials: int) -> None:
    """Measure in blocks, and say the ratio with its interval."""

    def measure() -> float:
        return throughput(scenario, build, trials)

    ratios = []
    for block in range(blocks):
        if block % 2:
            alone = measure()
            beside = beside_ray(measure)
        else:
            beside = beside_ray(measure)
            alone = measure()
        ratios.append(np.log(beside / alone))
        click.echo(f"block {block + 1}: {beside / alone:.4f}")
    middle, error = np.mean(ratios), stats.sem(ratios)
    low, high = stats.t.interval(0.95, blocks - 1, middle, error)
    click.echo(
        f"with / without: {np.exp(middle):.4f}, 95 % {np.exp(low):.4f} to {np.exp(high):.4f}"
    )


if __name__ == "__main__":
    main()
