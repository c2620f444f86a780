"""How long the database takes, and how much memory, on a store of any size.

::

    python -m tests.unit.database.speed FOLDER [--build]

Processor time is what this process used; on a machine that others use, that is the number to
look at, and the time on the clock is more. Memory is the resident set after the step, as Linux
counts it. FOLDER's newest record is taken out and put back, and with ``--build`` everything is
judged again, so it must be a store that nobody misses: one by ``tests.unit.database.synthetic``.
Which database it is, ``HYBRIDWATCH_DATABASE`` says.
"""

import resource
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hybridwatch.database.moment import HISTORY
from hybridwatch.database.queries import Index, open_index
from hybridwatch.errors import HybridwatchError
from hybridwatch.records.store import list_records, read_run
from tests.unit.database.synthetic import REVISION

_MEBI = 2**20


@dataclass(frozen=True, slots=True)
class Step:
    """What one step took."""

    name: str
    processor_s: float
    clock_s: float
    memory_mib: float


def measure(results: Path, *, build: bool = False) -> list[Step]:
    """Time everything that a dashboard does with an index."""
    records = list_records(results)
    if not records or read_run(records[-1], bulk=False).harness.revision != REVISION:
        raise HybridwatchError(f"{results}: expected a store by tests.unit.database.synthetic")
    steps: list[Step] = []

    def timed(name: str, step: Callable[[], object]) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        step()
        took = time.process_time() - processor, time.perf_counter() - clock
        steps.append(Step(name, *took, _resident_mib()))

    if build:
        timed("build all", lambda: open_index(results, rebuild=True))
    with TemporaryDirectory(dir=results) as aside:
        away = shutil.move(records[-1], aside)
        open_index(results)
        shutil.move(away, records[-1])
    timed("open with one new record", lambda: open_index(results))
    timed("open", lambda: open_index(results))
    for name, ask in _questions(open_index(results)):
        timed(f"{name}, first", ask)
        timed(f"{name}, again", ask)
    return steps


def _questions(index: Index) -> list[tuple[str, Callable[[], object]]]:
    cells = index.cells()
    cell = cells.sort_values("runs")[list(HISTORY)].iloc[-1].tolist()
    return [
        ("is_current", index.is_current),
        ("runs", index.runs),
        ("latest_verdicts", index.latest_verdicts),
        ("cells", index.cells),
        ("sparklines", lambda: index.sparklines(12)),
        ("series", lambda: index.series(*cell)),
        ("turns", index.turns),
        ("broken", index.broken),
    ]


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MEBI


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--build", is_flag=True, help="Also judge every record again.")
def command(folder: Path, build: bool) -> None:
    """Measure the database of FOLDER, a made-up store."""
    try:
        steps = measure(folder, build=build)
    except HybridwatchError as error:
        sys.exit(f"hybridwatch: {error}")
    click.echo(f"{'step':32}{'processor':>12}{'clock':>10}{'memory':>12}")
    for step in steps:
        click.echo(
            f"{step.name:32}{step.processor_s:10.3f} s{step.clock_s:8.3f} s"
            f"{step.memory_mib:8.0f} MiB"
        )


if __name__ == "__main__":
    command()
