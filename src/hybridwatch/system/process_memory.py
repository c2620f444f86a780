"""What a process and all that descend from it hold in memory, as Linux reports it.

Counted are anonymous and shared memory, each page once however many of the processes have it
(``Pss_Anon`` and ``Pss_Shmem`` of ``/proc/PID/smaps_rollup``). Pages of files are left out: the
libraries of an engine are gigabytes, which another engine on the machine shares or does not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_KIB: Final = 1024
_COUNTED: Final = ("Pss_Anon", "Pss_Shmem")
_FORGET_PEAK: Final = "5"
"""What ``/proc/PID/clear_refs`` takes to set the highest resident size to the present one."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes of a family of processes, now and at peaks, which need not be at the same time."""

    resident: int
    peak: int


def read_memory(pid: int) -> ProcessMemory | None:
    """Read what a process and its descendants hold; ``None`` where one of them cannot be read."""
    resident = beyond = 0
    try:
        for folder in _family(pid):
            rollup, status = (_read_sizes(folder / name) for name in ("smaps_rollup", "status"))
            resident += sum(rollup[key] for key in _COUNTED)
            beyond += max(0, status["VmHWM"] - status["VmRSS"])
    except (psutil.Error, OSError, KeyError):  # it has ended, or this kernel does not report it
        return None
    return ProcessMemory(resident, resident + beyond)


def forget_peak(pid: int) -> None:
    """Let the peaks of a process and its descendants begin again, where the kernel can."""
    try:
        for folder in _family(pid):
            (folder / "clear_refs").write_text(_FORGET_PEAK)
    except (psutil.Error, OSError):
        return


def _family(pid: int) -> Iterator[Path]:
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        yield Path("/proc") / str(one.pid)


def _read_sizes(file: Path) -> Mapping[str, int]:
    found = {}
    for line in file.read_text().splitlines():
        name, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            found[name] = int(rest.split()[0]) * _KIB
    return found
