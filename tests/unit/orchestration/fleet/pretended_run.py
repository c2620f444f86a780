"""Takes the place of ``hybridwatch run`` on a host: a record of made-up numbers after a while.

::

    python -m tests.unit.orchestration.fleet.pretended_run SCENARIO RESULTS SECONDS LABEL...

It imports little, since hundreds of it are started.
"""

import fcntl
import os
import random
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hybridwatch.records.identity import EngineBuild, FixState, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import Phase, Run, Sample, Trial

FIX = "padded-rows-prefilling"
WITNESS = "HYBRIDWATCH_PRETENDED_WITNESS"
"""Environment variable with a folder where each run shows that it is alone on its host."""


def a_record(scenario: str, labels: list[str], host: str, started: datetime) -> Run:
    """A run of seven timed trials a side that says where it was measured."""
    drawn = random.Random(f"{scenario} {host}")  # the same at any time of day
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
    from hybridwatch.records.store.files import write_run

    began = datetime.now(UTC)
    host = os.environ["HYBRIDWATCH_TESTBED_HOST"]
    with alone_on(host):
        time.sleep(float(seconds))
        write_run(Path(results), a_record(scenario, list(labels), host, began))
    sys.stdout.write(f"{scenario}: made up on {host} in {lived():.2f} s\n")


@contextmanager
def alone_on(host: str) -> Iterator[None]:
    """Leave a file that says so if another one measures on this host at the same time."""
    folder = os.environ.get(WITNESS)
    if not folder:
        yield
        return
    with (Path(folder) / f"{host}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (Path(folder) / f"{host}.twice").touch()
        yield


def lived() -> float:
    """Seconds since this process was started, its own imports included."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    since_boot = float(Path("/proc/uptime").read_text().split()[0])
    return since_boot - int(fields[19]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # what Python tidies up after the last line is no measurement
