"""Nothing of a guarded command outlives it, however it ends; work counts wherever it is done."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hybridwatch.system import guard
from hybridwatch.system.guarded import ConversingProcess, GuardedProcess, processor_seconds
from tests.waiting import LIMIT_S, has_ended, wait_until

FAMILY = """
import os, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep, start_new_session={new})
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
"""A command with a child, in its group or in a session of its own."""


def family(tmp_path: Path, *, new_session: bool) -> tuple[GuardedProcess, list[int]]:
    script = FAMILY.format(new=new_session)
    process = GuardedProcess([sys.executable, "-c", script], tmp_path / "log", {})
    return process, wait_until(lambda: family_in(tmp_path / "log"), "the family")


def family_in(log: Path) -> list[int]:
    """Both process ids, once they are there."""
    pids = log.read_text().split() if log.exists() else []
    return list(map(int, pids)) if len(pids) == 2 else []


def all_gone(pids: list[int]) -> bool:
    return all(map(has_ended, pids))


@pytest.mark.parametrize("new_session", [False, True])
def test_stop_ends_the_whole_family(tmp_path, new_session):
    process, pids = family(tmp_path, new_session=new_session)
    assert not all_gone(pids)
    process.stop()
    assert all_gone(pids)


def test_family_ends_when_the_owner_is_killed(tmp_path):
    """SIGKILL leaves no chance to clean up; the guard sees its standard input close."""
    log = tmp_path / "log"
    script = FAMILY.format(new=False)
    command = [sys.executable, "-c", script]
    owning = f"""
import pathlib, time
from hybridwatch.system.guarded import GuardedProcess
GuardedProcess({command!r}, pathlib.Path({str(log)!r}), {{}})
time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", owning])
    pids = wait_until(lambda: family_in(log), "the family")
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_until(lambda: all_gone(pids), "the end of the family")


def test_family_ends_when_the_guard_is_killed(tmp_path):
    process, pids = family(tmp_path, new_session=False)
    process._process.kill()
    wait_until(lambda: has_ended(pids[0]), "the end of the command")
    psutil.Process(pids[1]).kill()  # beyond the guard's reach: only the command itself is bound
    process.stop()
    wait_until(lambda: all_gone(pids), "the end of the family")


def test_a_command_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    stubborn = (
        "import signal, time, os\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n"
        "time.sleep(600)\n"
    )
    script = tmp_path / "guard_with_little_patience.py"
    script.write_text(Path(guard.__file__).read_text().replace("GRACE_S = 10.0", "GRACE_S = 0.5"))
    monkeypatch.setattr(guard, "__file__", str(script))
    process = GuardedProcess([sys.executable, "-c", stubborn], tmp_path / "log", {})
    pid = int(wait_until(process.log_tail, "the command"))
    process.stop()
    assert has_ended(pid)


def test_exit_status_and_log_of_a_command_that_ends(tmp_path):
    process = GuardedProcess(
        [sys.executable, "-c", "print('the reason'); raise SystemExit(7)"], tmp_path / "log", {}
    )
    wait_until(lambda: process.exit_status is not None, "the end of the command")
    assert process.exit_status == 7
    assert process.log_tail() == "the reason\n"
    process.stop()


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (
            (
                "(Core pid=7) ERROR [core.py:13] NotImplementedError: 'pack' of 'Float' \n"
                "RuntimeError: Engine core initialization failed. See root cause above.\n"
            ),
            "NotImplementedError: 'pack' of 'Float'",
        ),
        ("an error like `OSError: ` is not told\nAn error: here neither\n", ""),
        ("", ""),
    ],
)
def test_the_first_exception_is_the_reason(tmp_path, said, first):
    process = GuardedProcess(
        [sys.executable, "-c", f"print({said!r}, end='')"], tmp_path / "log", {}
    )
    assert process.wait(LIMIT_S) == 0
    assert process.first_error() == first
    process.stop()


def test_the_first_exception_stays_in_sight_however_much_follows(tmp_path):
    said = "(EngineCore pid=7) ValueError: shape\n" + "(APIServer pid=1) it is gone\n" * 99
    process = GuardedProcess(
        [sys.executable, "-c", f"print({said!r}, end='')"], tmp_path / "log", {}
    )
    assert process.wait(LIMIT_S) == 0
    assert "ValueError" not in process.log_tail()
    assert process.log_excerpt().startswith("(EngineCore pid=7) ValueError: shape\n")
    process.stop()


ECHO = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"


def test_questions_are_answered(tmp_path):
    process = ConversingProcess([sys.executable, "-c", ECHO], tmp_path / "log", {})
    process.ask("who is there")
    assert process.answer(LIMIT_S) == "WHO IS THERE\n"
    with pytest.raises(TimeoutError):
        process.answer(0.0)
    process.stop()
    process.stop()


def test_an_end_without_an_answer_is_reported(tmp_path):
    process = ConversingProcess([sys.executable, "-c", "pass"], tmp_path / "log", {})
    with pytest.raises(EOFError):
        process.answer(LIMIT_S)
    process.stop()


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
