"""A CUDA device that is not there: tensors that say where they live, and a driver that counts.

The driver waits where torch's sources wait: in ``memcpy_and_sync`` and ``stream_synchronize``,
which also warn when the sync debug mode is on, and for events and devices, where it does not warn.
So the number of its waits is what a probe has to find.
"""

import warnings
from types import SimpleNamespace

from hybridwatch_engine.probes import wait_rules
from hybridwatch_engine.probes.device_waits import WARNING, Surface, Wrapped

WAIT_NS = 1000
WORK, IDLE = (SimpleNamespace(total_num_scheduled_tokens=count) for count in (3, 0))


class Driver:
    """Counts its waits, and lets time pass in them and nowhere else."""

    def __init__(self):
        self.waits = self.now = self.mode = self.warnings = self.allocator_syncs = 0

    def wait(self):
        self.waits += 1
        self.now += WAIT_NS

    def synchronize_stream(self, level):
        """As ``c10::cuda::stream_synchronize``; ``level`` callers up is the code in Python."""
        self.wait()
        if self.mode:
            self.warnings += 1
            told = f"{WARNING} (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:147.)"
            warnings.warn(told, UserWarning, stacklevel=level)

    def set_mode(self, mode):
        self.mode = mode


class _Tensor:
    """What the rules ask of a tensor, and what reads or copies one."""

    driver = Driver()

    def __init__(self, values=(1,), device="cuda:0", pinned=False):
        self.values = list(values)
        self.device = SimpleNamespace(type=device.partition(":")[0])
        self.pinned = pinned

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    def is_pinned(self):
        return self.pinned

    def numel(self):
        return len(self.values)

    def _read(self):
        if self.is_cuda:
            self.driver.synchronize_stream(4)

    def item(self):
        self._read()
        return self.values[0]

    def __bool__(self):
        # In torch this is C all the way down; here it goes by the name that is wrapped.
        return bool(self.item())

    def tolist(self):
        if self.values:
            self._read()
        return self.values

    def nonzero(self):
        self._read()
        return type(self)([at for at, value in enumerate(self.values) if value])

    def cpu(self):
        return self.to("cpu")

    def to(self, device=None, dtype=None, non_blocking=False):  # noqa: ARG002 - torch's own
        if isinstance(device, _Tensor):
            device = device.device
        target = getattr(device, "type", device) if device else self.device.type
        if not isinstance(target, str):
            return self  # a dtype
        target = target.partition(":")[0]
        if target != self.device.type and self.values and not non_blocking:
            self.driver.synchronize_stream(3)
        return type(self)(self.values, target, pinned=target == "cpu" and non_blocking)

    def copy_(self, source, non_blocking=False):
        crosses = source.is_cuda != self.is_cuda
        if crosses and not non_blocking:
            self.driver.synchronize_stream(3)
        elif crosses and source.is_cuda and not self.pinned:
            self.driver.wait()  # cudaMemcpyAsync into pageable memory
        self.values = source.values
        return self

    def masked_select(self, mask):
        """Has to know how many there are."""
        if mask.is_cuda:
            self.driver.synchronize_stream(3)
        return self

    def __getitem__(self, mask):
        """By a mask; too frequent a call to be wrapped."""
        self.driver.synchronize_stream(3)
        return self


class _Event:
    driver = Driver()
    cuda_event = 1

    def synchronize(self):
        self.driver.wait()


class _Stream:
    driver = Driver()

    def synchronize(self):
        self.driver.synchronize_stream(3)


class _Runner:
    def execute_model(self, _scheduled, work=lambda: None, dummy_run=False):  # noqa: ARG002
        work()
        return self

    def sample_tokens(self, work=lambda: None):
        work()


def make_world():
    """A fresh world: a driver, and classes of its own that use it."""
    driver = Driver()
    kinds = {"Tensor": _Tensor, "Event": _Event, "Stream": _Stream, "Runner": _Runner}
    made = {name: type(name, (kind,), {"driver": driver}) for name, kind in kinds.items()}
    return SimpleNamespace(driver=driver, **made)


def surface_of(world):
    """What the probe holds on to there, as ``cuda_surface`` has it for torch."""
    tensor = world.Tensor
    return Surface(
        steps=((world.Runner, "execute_model"),),
        ends=((world.Runner, "sample_tokens"),),
        wrapped=(
            Wrapped((tensor, "item"), "item", wait_rules.reads_device),
            Wrapped((tensor, "__bool__"), "bool", wait_rules.reads_device),
            Wrapped((tensor, "tolist"), "tolist", wait_rules.lists_device),
            Wrapped((tensor, "nonzero"), "nonzero", wait_rules.reads_device),
            Wrapped((tensor, "cpu"), "copy", wait_rules.lists_device),
            Wrapped((tensor, "to"), "copy", wait_rules.converts),
            Wrapped((tensor, "copy_"), "copy", wait_rules.fills),
            Wrapped((tensor, "masked_select"), "other", None),
            Wrapped((world.Event, "synchronize"), "event", wait_rules.waits),
            Wrapped((world.Stream, "synchronize"), "stream", wait_rules.waits),
        ),
        warn_on_sync=world.driver.set_mode,
        allocator_syncs=lambda: world.driver.allocator_syncs,
    )
