"""``python -m hybridwatch_lab.overhead``: does the harness slow what it measures?

Each pair runs the same load on the same engine, once through the harness and once by hand, in
alternating order. Prints tokens per second of both and the ratio of their medians.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from hybridwatch.engines.builds import DEFAULT_BUILD, parse_label
from hybridwatch.engines.load_client import client_arguments
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.phase import measure
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch.system.python_command import python_command

_BY_HAND: Final = (
    "from vllm.benchmarks import serve\n"
    "from vllm.utils.argparse_utils import FlexibleArgumentParser\n"
    "parser = FlexibleArgumentParser(); serve.add_cli_args(parser); serve.main(parser.parse_args())"
)
_TIMEOUT_S: Final = 300.0


def through_harness(pool: EnginePool, work: Path) -> float:
    """Tokens per second of one performance trial."""
    pool.make_ready(0)
    result = measure(Phase.PERFORMANCE, TrialContext(pool, 0, work)).client_result
    assert result is not None  # noqa: S101 - a performance trial has one
    return float(result["output_throughput"])


def by_hand(pool: EnginePool, work: Path) -> float:
    """Tokens per second of the client alone, started for this one load."""
    server = pool.engine(0).server
    file = work / "by-hand.json"
    load = pool.scenario.workload.generation
    subprocess.run(
        [
            *python_command("-c", _BY_HAND, python=server.launch.python),
            *client_arguments(server.launch, server.url, load, file),
        ],
        cwd=server.launch.model.parent,
        check=True,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    return float(json.loads(file.read_text(encoding="utf-8"))["output_throughput"])


def compare(pool: EnginePool, work: Path, pairs: int) -> dict[str, Any]:
    """Measure in pairs; the first of each side warms up and is dropped."""
    ways: tuple[Callable[[EnginePool, Path], float], ...] = (through_harness, by_hand)
    series: dict[str, list[float]] = {way.__name__: [] for way in ways}
    for pair in range(pairs + 1):
        for way in ways if pair % 2 else reversed(ways):
            value = way(pool, work)
            if pair:
                series[way.__name__].append(value)
            sys.stderr.write(f"[{pair}/{pairs}] {way.__name__}: {value:.0f} tok/s\n")
    harness, hand = (median(series[way.__name__]) for way in ways)
    return {**series, "ratio": harness / hand}


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_lab.overhead")
    parser.add_argument("--scenario", default="smoke/padded-graph-rows")
    parser.add_argument("--build", default=DEFAULT_BUILD)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    (scenario,) = find(home() / "scenarios", [options.scenario])
    sides = (parse_label(options.build),)
    with tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder:
        work = Path(folder)
        with EnginePool(scenario, sides, home() / "models", work, lambda _: None) as pool:
            sys.stdout.write(json.dumps(compare(pool, work, options.pairs)) + "\n")


if __name__ == "__main__":
    main()
