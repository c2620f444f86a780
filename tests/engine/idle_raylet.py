"""Whether an idle host of Ray beside an engine costs it anything: an A/A, with and without in turn.

::

    python -m tests.engine.idle_raylet --blocks 100

One engine is up all the time, and beside it a head and an idle host of Ray. Each block is two timed
trials; during one of them, in turn the first and the second, all processes of the host are stopped
(SIGSTOP), so that nothing but these differs between the two. The head works in both: it belongs on
another machine. What is said is the median over blocks of the ratio of output throughput with the
host to that without, with its 95 % interval. It needs a machine that does nothing else.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
import psutil
from scipy import stats

from hybridwatch.engine.builds import parse_label
from hybridwatch.home import home
from hybridwatch.measure.bench import Bench
from hybridwatch.measure.phase import measure
from hybridwatch.measure.station import Station
from hybridwatch.record.run import Phase
from hybridwatch.scenario.load import load_scenario
from tests.unit.fleet.on_ray import Nodes

_LEAST = 6  # fewer blocks have no 95 % interval of a median
_METRIC = "output_throughput"


@contextmanager
def idle_host() -> Iterator[list[psutil.Process]]:
    """Have a head, and a host with nothing to do; give the host's processes."""
    nodes = Nodes(0)
    before = set(psutil.Process().children(recursive=True))
    nodes.add("h0")
    processes = [one for one in psutil.Process().children(recursive=True) if one not in before]
    try:
        yield processes
    finally:
        resume(processes)
        nodes.stop()


def suspend(processes: list[psutil.Process]) -> None:
    """Stop processes where they are."""
    for process in processes:
        process.suspend()


def resume(processes: list[psutil.Process]) -> None:
    """Let them go on."""
    for process in processes:
        process.resume()


def throughput(station: Station) -> float:
    """Make one timed trial, and give its tokens per second."""
    found = measure(Phase.PERFORMANCE, station)
    (value,) = next(one.values for one in found.samples if one.metric == _METRIC)
    return value


def log_ratio(station: Station, ray: list[psutil.Process], *, is_first: bool) -> float:
    """Time a block.

    Returns:
        Logarithm of the throughput beside the host over that without.
    """
    held = {}
    for beside in (is_first, not is_first):
        (resume if beside else suspend)(ray)
        held[beside] = throughput(station)
    return float(np.log(held[True] / held[False]))


@click.command()
@click.option("--blocks", type=click.IntRange(_LEAST), default=100, show_default=True)
@click.option("--scenario", "name", default="smoke/padded-graph-rows", show_default=True)
@click.option("--build", default="cpu-0.27.1", show_default=True)
def main(blocks: int, name: str, build: str) -> None:
    """Measure in blocks, and say the ratio with its interval."""
    root = home() / "scenarios"
    scenario = load_scenario(root / f"{name}.toml", root)
    with (
        tempfile.TemporaryDirectory() as folder,
        Bench(scenario, [parse_label(build)], home() / "models", Path(folder), click.echo) as bench,
        idle_host() as ray,
    ):
        bench.make_ready(0)
        station = Station(bench, 0, Path(folder))
        throughput(station)  # the first trial of an engine is slower
        ratios = []
        for block in range(blocks):
            ratios.append(log_ratio(station, ray, is_first=block % 2 == 0))
            click.echo(f"block {block + 1}: {np.exp(ratios[-1]):.4f}")
    interval = stats.quantile_test(ratios, p=0.5).confidence_interval(0.95)
    low, middle, high = np.exp([interval.low, np.median(ratios), interval.high])
    click.echo(
        f"{len(ray)} processes of an idle host of Ray; with / without: {middle:.4f}, "
        f"95 % {low:.4f} to {high:.4f}"
    )


if __name__ == "__main__":
    main()
