"""The machine we measure on."""

import hashlib
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from hybridwatch.records.identity import Testbed
from hybridwatch.system import nvidia

HOST_VARIABLE: Final = "HYBRIDWATCH_TESTBED_HOST"
"""Environment variable with the name of a host whose histories are its own: it becomes part of the
testbed's id, so that machines of one kind are told apart."""

_GIB = 1024**3


def probe_testbed(devices: Sequence[nvidia.Device] = ()) -> Testbed:
    """Read the facts of this machine that affect numbers.

    The id is made from those facts alone, so two machines of one kind share it and a changed
    machine gets a new one. What is upgraded every few weeks (kernel, driver) is kept beside it, so
    that a history goes on; where it differs between two runs, their comparison says so. Where
    ``HYBRIDWATCH_TESTBED_HOST`` names this machine, it shares the id with no other.

    Args:
        devices: The GPUs that the builds compute on; none where they compute on the processor.

    Raises:
        GpuError: There are GPUs, but no driver answers.
    """
    model = _cpu_model()
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total
    facts = f"{model}|{cores}|{round(memory / _GIB)}"
    testbed = Testbed(
        id=f"{_plain(model)}-{cores}c-{_digest(facts)}",
        cpu_model=model,
        cores=cores,
        memory_bytes=memory,
        kernel=platform.release(),
    )
    found = _with_gpus(testbed, facts, devices) if devices else testbed
    host = os.environ.get(HOST_VARIABLE, "")
    return replace(found, id=f"{found.id}-{_plain(host)}") if host else found


def _with_gpus(testbed: Testbed, facts: str, devices: Sequence[nvidia.Device]) -> Testbed:
    driver = nvidia.driver()
    limits = tuple(one.power_limit_w for one in devices if one.power_limit_w is not None)
    facts += "".join(
        f"|{one.name}|{round(one.memory_bytes / _GIB)}|{one.power_limit_w}" for one in devices
    )
    return replace(
        testbed,
        id=f"{_plain(devices[0].name)}-x{len(devices)}-{testbed.cores}c-{_digest(facts)}",
        gpus=tuple(one.name for one in devices),
        driver=driver.version,
        cuda=driver.cuda,
        gpu_memory_bytes=tuple(one.memory_bytes for one in devices),
        gpu_power_limits_w=limits if len(limits) == len(devices) else (),
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode()).hexdigest()[:6]


def _cpu_model() -> str:
    """The processor's name; the architecture where the kernel does not name one."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return named[1].strip() if named else platform.machine()
