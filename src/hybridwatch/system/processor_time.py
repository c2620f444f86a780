"""Processor time of whole process families: what they worked, however long they had to wait."""

import ctypes
import time
from typing import Final

import psutil

_LIBC: Final = ctypes.CDLL(None)


def processor_seconds(pid: int) -> float:
    """Add up the processor time of a process and of all that descend from it.

    To the nanosecond, where ``/proc`` rounds to ticks of ten milliseconds: a trial's work is a few
    seconds, spread over several processes, and each of them would be off by a tick.

    Returns:
        Seconds since the processes began; children that have ended are counted by their parents,
        these in ticks.
    """
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:  # it has ended
        return 0.0
    return sum(map(_seconds_of, family))


def _seconds_of(process: psutil.Process) -> float:
    try:
        spent = process.cpu_times()
        own = time.clock_gettime(_clock_of(process.pid))
    except (psutil.Error, OSError):  # ended a moment ago: its parent counts it
        return 0.0
    return float(own + spent.children_user + spent.children_system)


def _clock_of(pid: int) -> int:
    """Give the clock of a process, which counts what all of its threads have worked.

    Raises:
        ProcessLookupError: It has ended.
    """
    clock = ctypes.c_int()
    error = _LIBC.clock_getcpuclockid(ctypes.c_int(pid), ctypes.byref(clock))
    if error:
        raise OSError(error, "clock_getcpuclockid")
    return clock.value
