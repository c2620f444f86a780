"""Run by the engine's Python: planted waits on tensors of a pretended CUDA device, on real torch.

The tensors are on the host and say that they live on ``cuda:0``; torch takes their word for it as
far as they can do without a device. Prints what the probe of waits saw.
"""

import json
import sys
from contextlib import suppress
from types import SimpleNamespace

import torch
from hybridwatch_engine.probes.device_waits import DeviceWaitsProbe, cuda_surface
from hybridwatch_engine.probes.wait_rules import can_be_watched, watchable_events
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class OnDevice(torch.Tensor):  # type: ignore[misc]  # the harness has no torch
    """A tensor that says it lives on the first CUDA device."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device="cuda:0"
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, _types, args=(), kwargs=None):
        plain = [one.inner if isinstance(one, OnDevice) else one for one in args]
        named = {name: value for name, value in (kwargs or {}).items() if name != "pin_memory"}
        if "device" in named:
            named["device"] = torch.device("cpu")
        return function(*plain, **named)


def planted_step(_runner: object, _scheduled: object) -> None:
    """Eight waits, and as many calls that wait for nobody."""
    one, many = OnDevice(torch.tensor(1)), OnDevice(torch.tensor([0, 1, 1]))
    host, into = torch.tensor(1), torch.zeros(3, dtype=torch.int64)
    one.item()
    bool(one)
    with suppress(RuntimeError):  # no device to switch to: counted, and then it fails
        int(one)
    with suppress(RuntimeError):
        [10, 20][one]
    many.cpu()
    many.to("cpu")
    into.copy_(many)
    into.copy_(many, non_blocking=True)  # into pageable memory
    host.item()
    bool(host)
    int(host)
    [10, 20][host]
    host.cpu()
    host.to(torch.float32)
    host.tolist()
    many.to("cpu", non_blocking=True)


def main() -> None:
    """Run two steps with the probe on, and tell what it left behind."""
    modes: list[int] = []
    torch._C._cuda_set_sync_debug_mode = modes.append  # what a build for CUDA has
    torch.cuda.memory_stats = lambda: {"num_sync_all_streams": 0}
    static = can_be_watched(torch.Event)
    watchable_events().install()
    before = dict(vars(torch.Tensor)), dict(vars(torch.Event))
    GPUModelRunner.execute_model = planted_step
    probe = DeviceWaitsProbe(cuda_surface)
    probe.start()
    wrapped = "synchronize" in vars(torch.Event)
    for _ in range(2):
        GPUModelRunner.execute_model(None, SimpleNamespace(total_num_scheduled_tokens=3))
    seen = probe.stop()
    told = {
        "seen": seen,
        "modes": [modes[0], modes[-1]],
        "events": [static, can_be_watched(torch.Event), wrapped],
        "left_nothing": (dict(vars(torch.Tensor)), dict(vars(torch.Event))) == before,
    }
    sys.stdout.write("\n" + json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
