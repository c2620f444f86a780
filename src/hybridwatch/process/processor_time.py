"""Processor time of whole process families: what they worked, however long they had to wait."""

import psutil


def processor_seconds(pid: int) -> float:
    """Add up the processor time of a process and of all that descend from it.

    User and system time together: their sum is what the kernel accounts to the nanosecond and
    rounds to ticks of ten milliseconds; how it splits them it only samples.

    Returns:
        Seconds since the processes began; children that have ended are counted by their parents.
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
    except psutil.Error:  # ended a moment ago: its parent counts it
        return 0.0
    return float(spent.user + spent.system + spent.children_user + spent.children_system)
