"""``python -m hybridwatch_engine_lab.studies.probe_cost MODEL``: what counting host syncs costs.

One engine in one process decodes batches, with the probe on and off in turn. Prints one JSON
object: for each batch size the speed of both, and how long a step with the probe lasts against one
without. On a CUDA device the exit status is 1 when that is surely above the goal.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.host_sync import HostSyncProbe, runs_on_cuda

from hybridwatch_engine_lab.studies.stepping import (
    compute_speeds,
    device_name,
    give,
    own_answer,
    say,
    start,
    step_time_ratio,
    time_stretches,
)

GOAL: Final = 1.01
"""A step with the probe on a CUDA device may last this much of one without."""


class _WhileOn(PatchSet):
    """The probe, to be put in and out like patches."""

    def __init__(self) -> None:
        super().__init__()
        self._probe = HostSyncProbe()

    def install(self) -> None:
        """Start the probe."""
        self._probe.start()

    def remove(self) -> None:
        """Stop the probe."""
        self._probe.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the engine, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m hybridwatch_engine_lab.studies.probe_cost")
    parser.add_argument("model")
    parser.add_argument("--batches", type=int, nargs="+", default=[8], help="requests in a batch")
    parser.add_argument("--rounds", type=int, default=40, help="stretches of each kind")
    parser.add_argument("--engine", type=json.loads, default={}, help="engine arguments, as JSON")
    options = parser.parse_args(arguments)
    batches: dict[str, dict[str, Any]] = {}
    with own_answer() as answer:
        engine = start(options.model, max(options.batches), options.engine)
        results = {
            "device": device_name(),
            "rounds": options.rounds,
            "goal": GOAL,
            "batches": batches,
        }
        for rows in options.batches:
            batches[str(rows)] = cost(engine, rows, options.rounds)
            give(answer, results)
    above = any(batch["step_time"]["low"] > GOAL for batch in batches.values())
    return int(above and runs_on_cuda())


def cost(engine: Any, rows: int, rounds: int) -> dict[str, Any]:
    """Speed with the probe and without, and the one's step time against the other's."""
    say(f"{rows} requests")
    found = time_stretches(engine, {"off": PatchSet(), "on": _WhileOn()}, rows, rounds)
    return {**compute_speeds(found), "step_time": step_time_ratio(found, "on", "off")}


if __name__ == "__main__":
    sys.exit(main())
