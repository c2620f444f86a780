"""What a host shows of itself before it may measure."""

import platform
from importlib.metadata import version

from hybridwatch.errors import GpuError
from hybridwatch.measurement.machine_state import kernel_seconds
from hybridwatch.measurement.testbed import probe_testbed
from hybridwatch.orchestration.fleet.health import HealthReport
from hybridwatch.system import nvidia

_ROUNDS = 12
"""Times that each side of the A/A has its turn: with five repetitions each, 0.01 s apiece, a host
has shown itself within two seconds."""


def probe() -> HealthReport:
    """Read the facts of this machine, and time the calibration kernel for two like sides."""
    try:
        devices = nvidia.devices()
    except GpuError:
        devices = ()  # whether it should have some, its testbeds say
    testbed = probe_testbed(devices)
    sides: tuple[list[float], list[float]] = ([], [])
    for turn in range(2 * _ROUNDS):
        sides[turn % 2].extend(kernel_seconds())
    facts = {
        "hybridwatch": version("hybridwatch"),
        "python": platform.python_version(),
        "testbed": testbed.id,
        "processor": testbed.cpu_model,
        "cores": str(testbed.cores),
        "kernel": testbed.kernel,
        "driver": testbed.driver or "",
        "gpus": ", ".join(testbed.gpus),
    }
    return HealthReport(facts, sides)
