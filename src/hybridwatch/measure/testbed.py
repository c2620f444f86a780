"""The machine we measure on."""

import hashlib
import os
import platform
import re
from pathlib import Path

import psutil

from hybridwatch.record.identity import Testbed

_GIB = 1024**3


def probe_testbed() -> Testbed:
    """Read the facts of this machine that affect numbers.

    The id is made from those facts alone, so two machines of one kind share it and a changed
    machine gets a new one.
    """
    model = _cpu_model()
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total
    kernel = platform.release()
    facts = f"{model}|{cores}|{round(memory / _GIB)}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:6]
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return Testbed(
        id=f"{name}-{cores}c-{digest}",
        cpu_model=model,
        cores=cores,
        memory_bytes=memory,
        kernel=kernel,
    )


def _cpu_model() -> str:
    """The processor's name; the architecture where the kernel does not tell one."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return named[1].strip() if named else platform.machine()
