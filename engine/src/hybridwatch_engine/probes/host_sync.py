"""The host-synchronisation probe: what an engine step waits for, or on a CPU what it reads."""

from typing import Any

from hybridwatch_engine.probes.device_waits import DeviceWaitsProbe
from hybridwatch_engine.probes.host_reads import HostReadsProbe


class HostSyncProbe:
    """Counts waits on a CUDA engine (``device_waits.py``), else reads (``host_reads.py``)."""

    def __init__(self) -> None:
        self._form: HostReadsProbe | DeviceWaitsProbe | None = None

    def start(self) -> None:
        """Count from zero."""
        if self._form is None:
            self._form = DeviceWaitsProbe() if runs_on_cuda() else HostReadsProbe()
        self._form.start()

    def stop(self) -> dict[str, Any]:
        """Stop counting and tell what the form tells."""
        return (self._form or HostReadsProbe()).stop()


def runs_on_cuda() -> bool:
    """Whether this process runs its engine on a device that is used through ``torch.cuda``."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cuda_alike())
