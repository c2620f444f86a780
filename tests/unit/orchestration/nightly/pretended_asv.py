"""Pretends to be asv for the tests of a night: a record per run, in no time, or never.

``python pretended_asv.py run|publish ...``, called as the real one is. ``PRETEND`` names a JSON
file: for a scenario's module ``hang`` (its record is made, then nothing more), ``die`` (no record)
or ``slow`` (a fifth slower).
"""

import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hybridwatch.records.store import write_run
from tests.builders import SCENARIO, a_run, noisy

RUN_ID_DIGITS = 8


def fake_run(module: str, *, slow: bool):
    """One run of the same build against itself, or against a slower one."""
    healthy = {"ttft": noisy(0.04, 12, 0.01, 1), "contract.slots_off_block_table": (0.0,) * 3}
    contender = {**healthy, "ttft": noisy(0.05 if slow else 0.04, 12, 0.01, 2)}
    number = len(list(Path(os.environ["HYBRIDWATCH_RESULTS"]).glob("records/*/*.json")))
    run = a_run(
        healthy,
        contender,
        id=f"{number:0{RUN_ID_DIGITS}x}",
        scenario=replace(SCENARIO, id=module.replace(".", "/").replace("_", "-")),
        started_at=datetime.now(UTC),
    )
    return replace(run, builds=(run.builds[0], run.builds[0]))


def main(words: list[str]) -> int:
    """Do as asv would."""
    sys.stderr.write(f"{' '.join(words)}\n")
    with Path(os.environ["CALLS"]).open("a") as calls:
        calls.write(" ".join([words[0], *words[-1:]]) + "\n")
    if words[0] == "publish":
        return 0
    module = words[-1].removeprefix("^").removesuffix("\\.").replace("\\", "")
    pretended = json.loads(Path(os.environ["PRETEND"]).read_text()).get(module)
    if pretended == "die":
        return 1
    receipt = Path(os.environ["HYBRIDWATCH_RECEIPT"])
    if not receipt.is_file():  # as the suite does: nothing is measured twice
        run = fake_run(module, slow=pretended == "slow")
        receipt.write_text(str(write_run(Path(os.environ["HYBRIDWATCH_RESULTS"]), run)))
    if pretended == "hang":
        time.sleep(600)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
