"""What a family of processes holds, read from the kernel."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybridwatch.system.guarded import forget_peak, read_memory

MIB = 2**20
PARENT = """
import subprocess, sys
size = int(sys.argv[1])
held = bytearray(b"x") * size
child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdin=-1, stdout=-1, text=True)
child.stdout.readline()
print("up", flush=True)
input()
more = bytearray(b"x") * size
del more
print("done", flush=True)
input()
child.communicate("\\n")
"""
CHILD = """
held = bytearray(b"x") * 2**25
print("up", flush=True)
input()
"""
OF_CHILD = 32 * MIB


@contextmanager
def a_family(held: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds so many bytes, with a child; told to, it takes as many for a moment."""
    command = [sys.executable, "-c", PARENT, str(held), CHILD]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == "up\n"
        yield one
        one.communicate("\n\n")


def test_what_a_process_holds_is_told_to_less_than_a_mebibyte():
    with a_family(MIB) as little, a_family(65 * MIB) as much:
        few, many = read_memory(little.pid), read_memory(much.pid)
    assert few is not None
    assert many is not None
    assert abs(many.resident - few.resident - 64 * MIB) < MIB


def test_children_are_counted():
    with a_family(MIB) as one:
        whole = read_memory(one.pid)
        rollup = Path(f"/proc/{one.pid}/smaps_rollup").read_text()
    alone = next(int(line.split()[1]) for line in rollup.splitlines() if "Pss_Anon" in line)
    assert whole is not None
    assert whole.resident > 1024 * alone + OF_CHILD


def test_peak_is_what_was_held_since_it_was_forgotten():
    with a_family(64 * MIB) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        forget_peak(one.pid)
        before = read_memory(one.pid)
        one.stdin.write("\n")
        one.stdin.flush()
        assert one.stdout.readline() == "done\n"
        after = read_memory(one.pid)
    assert before is not None
    assert after is not None
    assert before.peak - before.resident < MIB
    assert abs(after.peak - after.resident - 64 * MIB) < 2 * MIB


def test_a_process_that_is_gone_tells_nothing():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert read_memory(gone.pid) is None
    forget_peak(gone.pid)
    assert read_memory(os.getpid()) is not None
