"""Run by the engine's Python: planted host reads, counted by the probe; prints what it saw."""

import json
import sys
from types import SimpleNamespace

import torch
from hybridwatch_engine.probes.host_sync import HostSyncProbe
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


def planted_step(_runner: object, _scheduled: object) -> None:
    """Nine reads, each by another way."""
    one, many = torch.tensor(1), torch.tensor([0, 1, 1])
    one.item()
    many.tolist()
    bool(one)
    int(one)
    float(one)
    [10, 20][one]
    many.nonzero()
    torch.nonzero(many)
    if one:
        many.add_(1)  # no read: stays where it is


def main() -> None:
    """Run no step, then two steps with work, then one without."""
    GPUModelRunner.execute_model = planted_step
    probe = HostSyncProbe()
    probe.start()
    torch.tensor(1).item()  # before any step: belongs to none
    work, idle = (SimpleNamespace(total_num_scheduled_tokens=count) for count in (3, 0))
    for scheduled in (work, work):
        GPUModelRunner.execute_model(None, scheduled)
    seen = probe.stop()
    GPUModelRunner.execute_model(None, idle)  # the probe is off
    after = probe.stop()
    sys.stdout.write("\n" + json.dumps({"seen": seen, "after": after}) + "\n")


if __name__ == "__main__":
    main()
