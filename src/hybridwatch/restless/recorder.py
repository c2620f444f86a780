"""``python -m hybridwatch.restless.recorder``: record sessions whose truth is known.

One engine is measured beside itself and beside itself with planted faults, block by block as in
``hybridwatch run``, by the same trials. What comes out is added to a file that the calibration
reads. To be run beside a noisy neighbour (``hybridwatch.restless.neighbour``).
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from hybridwatch.calibration.sessions import BASELINE, SAME, recorded, write_sessions
from hybridwatch.engine.builds import DEFAULT_BUILD, home, parse_label
from hybridwatch.errors import HybridwatchError
from hybridwatch.measure.session import Progress, SessionRequest, run_session
from hybridwatch.process import stoppable
from hybridwatch.record.run import Phase
from hybridwatch.scenario.load import find

_SCENARIO: Final = "smoke/single-token-extend"
_FAULTS: Final = ("busy-step-10", "slow-step-10")
_BLOCKS: Final = 7


def record(build: str, faults: tuple[str, ...], sessions: int, blocks: int, file: Path) -> None:
    """Measure, and add the trials to a file.

    The baseline stands between the engine that is the same and the first fault, so that its trials
    lie beside theirs; the order of all turns round with each block.

    Args:
        build: Label of the engine.
        faults: Planted in it, one at a time.
        sessions: How many, one after the other on one engine.
        blocks: Of a session.
        file: Where to.

    Raises:
        HybridwatchError: It cannot be measured, or the file holds something else.
    """
    (scenario,) = find(home() / "scenarios", (_SCENARIO,))
    counts = scenario.trials.model_copy(update={"performance": sessions * blocks})
    scenario = scenario.model_copy(update={"trials": counts})
    names = (SAME, BASELINE, *faults)
    labels = (build, build, *(f"{build}+{fault}" for fault in faults))
    sides = tuple(map(parse_label, labels))

    def tell(progress: Progress) -> None:
        sys.stderr.write(f"{progress.done}/{progress.total} {progress.text}\n")

    phases = {Phase.PERFORMANCE}
    run = run_session(SessionRequest(scenario, sides, home() / "models", tell, phases))
    write_sessions(file, recorded(run, names, blocks))


def main() -> int:
    """Parse the command line and record; 1 if it failed, 2 if the call was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch.restless.recorder",
        description="Record sessions of an engine beside itself and beside planted faults.",
    )
    parser.add_argument("file", type=Path, help="CSV that gets the trials")
    parser.add_argument("--build", default=DEFAULT_BUILD)
    parser.add_argument("--fault", action="append", help=f"default: {', '.join(_FAULTS)}")
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=_BLOCKS, help="of a session")
    options = parser.parse_args()
    if min(options.sessions, options.blocks) < 1:
        parser.error("--sessions and --blocks: expected at least 1")
    faults = tuple(options.fault or _FAULTS)
    try:
        with stoppable():
            record(options.build, faults, options.sessions, options.blocks, options.file)
    except HybridwatchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
