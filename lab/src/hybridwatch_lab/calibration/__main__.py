"""``python -m hybridwatch_lab.calibration``: measure our own rules, write down what came out.

The only module of the package that reads and writes files. Progress goes to standard error; the
promised figures go to standard output, or the whole document to a file.
"""

import argparse
import csv
import json
import math
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console

from hybridwatch.errors import HistoryError, HybridwatchError
from hybridwatch_lab.calibration import (
    accuracy,
    asv_files,
    comparisons,
    noisy_machine,
    online,
    places,
    reports,
    run_worlds,
    sequential_runs,
    speed,
    synthetic,
)
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection, to_json, to_markdown
from hybridwatch_lab.calibration.simulated import Array

EXPERIMENTS: Final[tuple[Callable[[Laboratory], LabSection], ...]] = (
    reports.of_equal_sides,
    comparisons.of_one_metric,
    comparisons.compare_with_field,
    comparisons.over_the_plane,
    comparisons.of_promises,
    reports.of_two_runs,
    run_worlds.of_unlike_runs,
    noisy_machine.of_recorded_sessions,
    sequential_runs.of_repeated_looks,
    accuracy.of_answers,
    online.on_known_noise,
    synthetic.on_finished_series,
    places.of_places,
    places.of_onsets,
    synthetic.of_information,
)
"""Experiments that need nothing from outside and give the same on any machine."""


def perform(lab: Laboratory, histories: Mapping[str, Array]) -> tuple[LabSection, ...]:
    """Measure every rule."""
    # First, in a process as fresh as that of a user: later ones have memory at hand.
    time = speed.of_detector(lab)
    sections = tuple(experiment(lab) for experiment in EXPERIMENTS)
    real = (
        asv_files.of_asv_files,
        run_worlds.of_real_runs,
        online.on_real_noise,
        online.on_held_back,
    )
    of_histories = tuple(experiment(lab, histories) for experiment in real) if histories else ()
    return (*sections, *of_histories, time)


_SEED: Final = 1
HISTORIES: Final = Path(__file__).parent / "histories" / "numpy-asv.csv"
"""Real series of the checkout; files next to them name their sources."""
_COMMAND: Final = "python -m hybridwatch_lab.calibration"


def read_histories(file: Path) -> Mapping[str, Array]:
    """Read real series for their noise.

    Args:
        file: CSV with a header, columns ``series`` and ``value``, oldest first within a series.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            if not {"series", "value"} <= set(rows.fieldnames or ()):
                raise HistoryError(f"{file}: expected columns series and value")
            for row in rows:
                found[row["series"]].append(_positive(row["value"], f"{file}:{rows.line_num}"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HistoryError(f"{file}: cannot be read: {error}") from error
    return {name: np.asarray(values) for name, values in found.items()}


def _positive(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise HistoryError(f"{where}: value: expected a positive number, found {text!r}")
    return value


@contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A moving line on a terminal, a plain line per step elsewhere."""
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, highlight=False)
        return
    with console.status("") as status:
        yield status.update


def main() -> int:
    """Parse the command line, measure, write; 1 if a bound is not met, 2 if the call was wrong."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument(
        "--histories",
        type=Path,
        default=HISTORIES,
        help="CSV series,value of real benchmarks, oldest first",
    )
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--quick", action="store_true", help="few simulations: seconds, rough")
    parser.add_argument("--write", type=Path, help="Markdown document to write")
    parser.add_argument("--json", type=Path, help="figures to write, for the dashboard")
    options = parser.parse_args()
    try:
        histories = read_histories(options.histories)
    except HybridwatchError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with progress(Console(stderr=True)) as on_progress:
        sections = perform(Laboratory(options.seed, options.quick, on_progress), histories)
    command = shlex.join(_texts(options))
    document = to_markdown(sections, command)
    if options.write:
        options.write.write_text(document, encoding="utf-8")
    else:
        sys.stdout.write(document)
    if options.json:
        values = to_json(sections, command, options.seed)
        options.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    broken = [one for section in sections for one in section.figures if one.met is False]
    for one in broken:
        sys.stderr.write(f"not met: {one.what}: {one.value:.3g}\n")
    return 1 if broken else 0


def _texts(options: argparse.Namespace) -> Iterator[str]:
    yield from _COMMAND.split()
    if options.histories != HISTORIES:
        # Where the file lies is the caller's business; the document names it alone.
        yield from ("--histories", options.histories.name)
    yield from ("--seed", str(options.seed))
    yield from ("--quick",) if options.quick else ()


if __name__ == "__main__":
    sys.exit(main())
