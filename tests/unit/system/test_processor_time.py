"""Processor time of a process family: work counts wherever it is done, sleep does not."""

import os
import subprocess
import sys

from hybridwatch.system.guarded import processor_seconds

TICKS_S = 0.03
"""User and system time are each cut to a tick of ten milliseconds, for each process."""
WORK = "while time.process_time() < {seconds}: pass\n"
PAUSE = "time.sleep(0.1)\n"
IN_A_CHILD = """
code = "import time\\nwhile time.process_time() < 0.6: pass\\nprint(time.process_time())"
said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout
of_children = float(said)
"""
TOLD = """
print(time.process_time() + of_children, flush=True)
input()
print(time.process_time() + of_children, flush=True)
"""


def seen(code: str) -> tuple[float, float, float]:
    """What a process says that it has worked, what we see of it, and what it says then."""
    code = f"import subprocess, sys, time\nof_children = 0.0\n{code}{TOLD}"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        before = float(one.stdout.readline())
        seconds = processor_seconds(one.pid)
        after, _ = one.communicate("\n")
    return before, seconds, float(after)


def test_work_is_counted_and_sleep_is_not():
    before, seconds, after = seen(WORK.format(seconds=0.3) + PAUSE)
    assert before >= 0.3
    assert before <= seconds <= after, "with the pause it would be 0.1 s more"


def test_work_of_a_child_that_has_ended_is_counted():
    before, seconds, _ = seen(IN_A_CHILD)
    assert seconds >= before - TICKS_S, "without the child it would be 0.6 s less"


def test_a_process_that_is_gone_has_nothing_to_count():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert processor_seconds(gone.pid) == 0.0
    assert processor_seconds(os.getpid()) > 0.0


def test_it_is_read_to_less_than_a_tick():
    code = """
import os, time
from hybridwatch.system.guarded import processor_seconds
before = time.process_time()
seconds = processor_seconds(os.getpid())
print(before <= seconds <= time.process_time())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "True\n"
