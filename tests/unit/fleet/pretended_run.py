"""Takes the place of ``hybridwatch run`` on a host: a record of made-up numbers after a while.

::

    python -m tests.unit.fleet.pretended_run SCENARIO RESULTS SECONDS LABEL...

It imports little, since hundreds of it are started.
"""

import os
import random
import secrets
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hybridwatch.record.identity import EngineBuild, FixState, Harness, ScenarioRef, Testbed
from hybridwatch.record.run import Phase, Run, Sample, Trial

FIX = "padded-rows-prefilling"


def a_record(scenario: str, labels: list[str], host: str, started: datetime) -> Run:
    """A run of seven timed trials a side that says where it was measured."""
    drawn = random.Random(f"{scenario} {host} {started}")
    sides = [turn % len(labels) for turn in range(7 * len(labels))]
    return Run(
        id=secrets.token_hex(4),
        started_at=started,
        finished_at=started + timedelta(minutes=1),
        harness=Harness("0", "made up: never measured"),
        scenario=ScenarioRef(scenario, 1, "d" * 64, FIX),
        testbed=Testbed(f"made-up-{host}", "none: made up", 2, 2**34, "none"),
        builds=tuple(a_build(label) for label in labels),
        trials=tuple(
            Trial(
                index=index,
                side=side,
                phase=Phase.PERFORMANCE,
                started_at=started,
                duration_s=1.0,
                samples=(Sample("ttft", (drawn.lognormvariate(-3.0, 0.02),)),),
            )
            for index, side in enumerate(sides)
        ),
    )


def a_build(label: str) -> EngineBuild:
    return EngineBuild(
        label=label,
        name=label.partition("~")[0],
        release="0.27.1",
        accelerator="cpu",
        distribution="none: made up",
        lock_digest="1" * 64,
        wheel_digest="2" * 64,
        fixes={FIX: FixState.PRESENT},
        flags={},
    )


def main(scenario: str, results: str, seconds: str, *labels: str) -> None:
    """Wait, and leave a record."""
    from hybridwatch.store.files import write_run

    began = datetime.now(UTC)
    time.sleep(float(seconds))
    host = os.environ["HYBRIDWATCH_TESTBED_HOST"]
    write_run(Path(results), a_record(scenario, list(labels), host, began))
    sys.stdout.write(f"{scenario}: made up on {host}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
