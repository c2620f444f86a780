"""A process group of ours: guarded, logged, ended without remains; what families work and hold."""

import ctypes
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from hybridwatch.system import guard, stopping
from hybridwatch.system.engine_log import excerpt, first_cause

_LOOPBACK: Final = "127.0.0.1,localhost"
_LIBC: Final = ctypes.CDLL(None)
TAIL_LINES: Final = 40
_END_S: Final = 2 * guard.GRACE_S + 5.0


def without_proxy() -> dict[str, str]:
    """Variables that keep loopback requests from a proxy, on top of what is exempt already."""
    exempt = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    return {name: ",".join(filter(None, (hosts, _LOOPBACK))) for name, hosts in exempt.items()}


def processor_seconds(pid: int) -> float:
    """Add up the processor seconds of a process and of all that descend from it since they began.

    To the nanosecond, where ``/proc`` rounds to ticks of ten milliseconds: a trial's work is a few
    seconds, spread over several processes, and each of them would be off by a tick. Children that
    have ended are counted by their parents, in ticks.
    """
    try:
        return sum(map(_read_seconds, _family(pid)))
    except psutil.Error:  # it has ended
        return 0.0


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _read_seconds(process: psutil.Process) -> float:
    try:
        spent = process.cpu_times()
        own = time.clock_gettime(_find_clock(process.pid))
    except (psutil.Error, OSError):  # ended a moment ago: its parent counts it
        return 0.0
    return float(own + spent.children_user + spent.children_system)


def _find_clock(pid: int) -> int:
    """Give the clock of a process, which counts what all of its threads have worked."""
    clock = ctypes.c_int()
    error = _LIBC.clock_getcpuclockid(ctypes.c_int(pid), ctypes.byref(clock))
    if error:
        raise OSError(error, "clock_getcpuclockid")
    return clock.value


class GuardedProcess:
    """A command under the guard (``system.guard``), its output in a log file.

    The guard ends the whole group when we close its standard input, on purpose or by dying.
    ``environment`` comes on top of this process's own variables. ``stdin`` and ``stdout`` are
    descriptors; without them there is nothing to read, and the log gets the output. Once a stop was
    requested (``system.stopping``), it starts nothing and raises ``KeyboardInterrupt``.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        *,
        folder: Path | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
    ) -> None:
        stopping.require_wanted()
        self._log = log
        options = [] if stdin is None else [f"--stdin={stdin}"]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *options, *command],
                stdin=subprocess.PIPE,
                stdout=file if stdout is None else stdout,
                stderr=file,
                cwd=folder,
                env={**os.environ, **environment},
                pass_fds=() if stdin is None else (stdin,),
                # A group of its own: Ctrl-C reaches us, and we end the group in order.
                process_group=0,
            )
        try:
            stopping.end_with_us(self._process)
        except KeyboardInterrupt:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The guard's, from which all processes of the command descend."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """``None`` while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int:
        """Wait for the command's own end; it still runs after a ``TimeoutError``.

        Where a stop was requested, and has ended it, that is a ``KeyboardInterrupt``.
        """
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        stopping.require_wanted()
        return status

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the log; empty when there is none."""
        try:
            with self._log.open(encoding="utf-8", errors="replace") as log:
                return "".join(deque(log, maxlen=lines))
        except OSError:
            return ""

    def first_error(self) -> str:
        """The first exception in the log and its place, in one line; empty when there is none."""
        return first_cause(self._logged()) or ""

    def log_excerpt(self) -> str:
        """The last lines of the log, behind the first exception where that is further up."""
        return excerpt(self._logged(), TAIL_LINES)

    def _logged(self) -> str:
        try:
            return self._log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """End the group and wait until nothing of it is left; may be called again."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            # The guard is stuck; the kernel then ends the command with it (PR_SET_PDEATHSIG).
            self._process.kill()
            self._process.wait()


class ConversingProcess:
    """A guarded command that answers each line on its standard input with one line."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        *,
        folder: Path | None = None,
    ) -> None:
        their_stdin, questions = os.pipe()
        answers, their_stdout = os.pipe()
        try:
            self._process = GuardedProcess(
                command, log, environment, folder=folder, stdin=their_stdin, stdout=their_stdout
            )
        finally:
            os.close(their_stdin)
            os.close(their_stdout)
        self._questions = os.fdopen(questions, "w", encoding="utf-8")
        self._answers = os.fdopen(answers, encoding="utf-8")
        self.log_tail = self._process.log_tail
        self.wait = self._process.wait

    def ask(self, line: str) -> None:
        """Send one line; a ``BrokenPipeError`` says that the command has ended."""
        self._questions.write(line + "\n")
        self._questions.flush()

    def answer(self, timeout_s: float) -> str:
        """Wait for one whole line; else a ``TimeoutError`` or, at its end, an ``EOFError``."""
        readable, _, _ = select.select([self._answers], [], [], timeout_s)
        if not readable:
            raise TimeoutError
        line = self._answers.readline()
        if not line:
            raise EOFError
        return line

    def stop(self) -> None:
        """End the command; may be called again."""
        for stream in (self._questions, self._answers):
            # What could not be sent to a command that has ended is of no use.
            with suppress(BrokenPipeError):
                stream.close()
        self._process.stop()


_PROC: Final = Path("/proc")
_KIB: Final = 1024
_COUNTED: Final = ("Pss_Anon", "Pss_Shmem")
_FORGET_PEAK: Final = "5"
"""What ``/proc/PID/clear_refs`` takes to set the highest resident size to the present one."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes of a family of processes, now and at peaks, which need not be at the same time.

    Counted are anonymous and shared memory, each page once however many of the processes have it
    (``Pss_Anon`` and ``Pss_Shmem`` of ``/proc/PID/smaps_rollup``). Pages of files are left out: the
    libraries of an engine are gigabytes, which another engine on the machine shares or does not.
    """

    resident: int
    peak: int


def read_memory(pid: int) -> ProcessMemory | None:
    """Read what a process and its descendants hold; ``None`` where one of them cannot be read."""
    resident = beyond = 0
    try:
        for one in _family(pid):
            folder = _PROC / str(one.pid)
            rollup, status = (_read_sizes(folder / name) for name in ("smaps_rollup", "status"))
            resident += sum(rollup[key] for key in _COUNTED)
            beyond += max(0, status["VmHWM"] - status["VmRSS"])
    except (psutil.Error, OSError, KeyError):  # it has ended, or this kernel does not report it
        return None
    return ProcessMemory(resident, resident + beyond)


def forget_peak(pid: int) -> None:
    """Let the peaks of a process and its descendants begin again, where the kernel can."""
    try:
        for one in _family(pid):
            (_PROC / str(one.pid) / "clear_refs").write_text(_FORGET_PEAK)
    except (psutil.Error, OSError):
        return


def _read_sizes(file: Path) -> Mapping[str, int]:
    found = {}
    for line in file.read_text().splitlines():
        name, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            found[name] = int(rest.split()[0]) * _KIB
    return found
