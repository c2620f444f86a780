"""Host synchronisations: an engine step's waits for the device, or on a CPU its reads of tensors.

On a GPU a read waits if the tensor lives on the device (``device_waits.py``). On a CPU it is not
known which reads would wait, so every read counts; the count is exact, with call sites and times.
Reads by Python code are seen, those by kernels and compiled extensions are not.
"""

import sys
from collections import Counter
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from hybridwatch_engine.model_runner import is_step, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.device_waits import DeviceWaitsProbe
from hybridwatch_engine.probes.wait_rules import name_site

READS = ("item", "tolist", "nonzero", "__bool__", "__int__", "__float__", "__index__")
"""Methods of ``torch.Tensor`` that hand values to the host or need them to know a shape."""


class HostReadsProbe:
    """Counts host reads per engine step while it is on."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._sites: Counter[str] = Counter()
        self._times_ns: Counter[str] = Counter()
        self._reading: set[int] = set()
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Count from zero."""
        self._steps, self._sites, self._times_ns = [], Counter(), Counter()
        if self._hooks is None:
            self._hooks = self._make_hooks()
        self._hooks.install()

    def stop(self) -> dict[str, Any]:
        """Stop counting and return the counts.

        Returns:
            ``reads_per_step``: a count for each engine step, in order; ``sites``: number of reads
            by ``file:function:line``, the most frequent first; ``site_seconds``: how long those
            took.
        """
        if self._hooks is not None:
            self._hooks.remove()
        return {
            "reads_per_step": self._steps,
            "sites": dict(self._sites.most_common()),
            "site_seconds": {site: time / 1e9 for site, time in self._times_ns.items()},
        }

    def _make_hooks(self) -> PatchSet:
        import torch

        reads = [Patch(torch.Tensor, name, self._counted) for name in READS]
        reads.append(Patch(torch, "nonzero", self._counted))
        return PatchSet(*(Patch(*function, self._step) for function in steps()), *reads)

    def _step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
            if is_step(scheduler_output, kwargs):
                self._steps.append(0)
            return original(runner, scheduler_output, *args, **kwargs)

        return execute_model

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            # Reads before the first step belong to no step, and a read inside a read (a default
            # device in force calls the method by its name again) is the same one.
            if not self._steps or thread in self._reading:
                return original(*args, **kwargs)
            self._steps[-1] += 1
            # A traceback object would cost far more.
            site = name_site(sys._getframe(1))  # noqa: SLF001
            self._sites[site] += 1
            self._reading.add(thread)
            start = perf_counter_ns()
            try:
                return original(*args, **kwargs)
            finally:
                self._times_ns[site] += perf_counter_ns() - start
                self._reading.discard(thread)

        return read


class HostSyncProbe:
    """Counts waits on a CUDA engine (``device_waits.py``), else reads."""

    def __init__(self) -> None:
        self._form: HostReadsProbe | DeviceWaitsProbe | None = None

    def start(self) -> None:
        """Count from zero."""
        if self._form is None:
            self._form = DeviceWaitsProbe() if runs_on_cuda() else HostReadsProbe()
        self._form.start()

    def stop(self) -> dict[str, Any]:
        """Stop counting and return the counts of the device's form."""
        return (self._form or HostReadsProbe()).stop()


def runs_on_cuda() -> bool:
    """Whether this process runs its engine on a device that is used through ``torch.cuda``."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cuda_alike())
