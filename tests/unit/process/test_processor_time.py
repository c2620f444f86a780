"""Processor time of a process family: work counts wherever it is done, sleep does not."""

import os
import subprocess
import sys

from hybridwatch.process import processor_seconds

TICKS_S = 0.03
"""User and system time are each cut to a tick of ten milliseconds, for each process."""
WORK = "import time\nwhile time.process_time() < {seconds}: pass\n"
IN_A_CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}])\n"


def worked(code: str) -> float:
    """Seconds that a process has worked when it says that it is done."""
    code += "print('done', flush=True)\ninput()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        one.stdout.readline()
        seconds = processor_seconds(one.pid)
        one.communicate("\n")
    return seconds


def test_work_is_counted_and_sleep_is_not():
    assert 0.5 - TICKS_S <= worked(WORK.format(seconds=0.5)) < 1.5 - TICKS_S
    assert worked(WORK.format(seconds=1.5)) >= 1.5 - TICKS_S
    assert worked("import time\ntime.sleep(0.6)\n") < 0.5


def test_work_of_a_child_that_has_ended_is_counted():
    assert worked(IN_A_CHILD.format(code=WORK.format(seconds=0.6))) >= 0.6 - TICKS_S


def test_a_process_that_is_gone_has_nothing_to_count():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert processor_seconds(gone.pid) == 0.0
    assert processor_seconds(os.getpid()) > 0.0


def test_it_is_read_to_less_than_a_tick():
    code = """
import os, time
from hybridwatch.process import processor_seconds
before = time.process_time()
seconds = processor_seconds(os.getpid())
print(before <= seconds <= time.process_time())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "True\n"
