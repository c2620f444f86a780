"""``python -m hybridwatch_lab.calibration.recording.recorder``: sessions whose truth is known.

One engine is measured in turn with itself and with itself plus planted faults, by blocks as in
``hybridwatch run``, by the same trials. What comes out is added to a file that the calibration
reads. Run it next to a noisy neighbour (``hybridwatch_lab.calibration.recording.neighbour``).
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds import DEFAULT_BUILD, parse_label
from hybridwatch.errors import HybridwatchError
from hybridwatch.measurement.plan import Budget, BudgetStatus
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import Progress, SessionRequest
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.calibration.sessions import BASELINE, SAME, recorded, write_sessions

_SCENARIO: Final = "smoke/single-token-extend"
_FAULT: Final = "busy-step-10"
_BLOCKS: Final = 7
_MINUTES: Final = 5.0
_MINUTE_S: Final = 60.0
_MOST_BLOCKS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record."""

    build: str = DEFAULT_BUILD
    faults: tuple[str, ...] = (_FAULT,)
    minutes: float = _MINUTES
    blocks: int = _BLOCKS


def record(wanted: Recording, file: Path) -> None:
    """Measure as many sessions as the time is good for, and add their trials to a file.

    The baseline stands between the engine that is the same and the first fault, so that its trials
    lie beside theirs; the order of all turns round with each block.
    """
    (scenario,) = find(home() / "scenarios", (_SCENARIO,))
    names = (SAME, BASELINE, *wanted.faults)
    labels = (wanted.build, wanted.build, *(f"{wanted.build}+{one}" for one in wanted.faults))

    def on_progress(progress: Progress) -> None:
        sys.stderr.write(f"{progress.done} trials, {progress.text}\n")

    # Nobody judges while it is recorded: something is open until the time is spent.
    seconds = wanted.minutes * _MINUTE_S
    budget = Budget((_MOST_BLOCKS,), seconds, lambda _: BudgetStatus(open=1, of=1))
    request = SessionRequest(
        scenario=scenario,
        sides=tuple(map(parse_label, labels)),
        models=home() / "models",
        on_progress=on_progress,
        phases={Phase.PERFORMANCE},
        budget=budget,
    )
    write_sessions(file, recorded(run_session(request), names, wanted.blocks))


def main() -> int:
    """Parse the command line and record; 1 if it failed, 2 if the call was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch_lab.calibration.recording.recorder",
        description="Record sessions of an engine beside itself and beside planted faults.",
    )
    parser.add_argument("file", type=Path, help="CSV that gets the trials")
    parser.add_argument("--build", default=DEFAULT_BUILD)
    parser.add_argument("--fault", action="append", help=f"default: {_FAULT}")
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="default: 5")
    parser.add_argument("--blocks", type=int, default=_BLOCKS, help="of a session; default: 7")
    options = parser.parse_args()
    if options.minutes <= 0 or options.blocks < 1:
        parser.error("--minutes: expected more than 0; --blocks: at least 1")
    faults = tuple(options.fault or (_FAULT,))
    wanted = Recording(options.build, faults, options.minutes, options.blocks)
    try:
        with stoppable():
            record(wanted, options.file)
    except HybridwatchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
