"""Run a command so that it, and all it starts, ends with its owner.

``python guard.py COMMAND...`` starts the command in a process group of its own and waits for the
first of three things: the command ends, a signal asks for an end, or standard input closes, which
happens also when the owner is killed without a chance to clean up. Then the whole group is ended:
first with SIGTERM, so that an engine shuts its workers down, and after a while with SIGKILL.

``--stdin=FD`` before the command gives it that descriptor as its standard input.

Standard library only, and no import of ours: it is started by path, before any environment.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

GRACE_S = 10.0
"""Time an engine gets to end its workers after SIGTERM."""

_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_guard() -> None:
    """In the command, before it starts: end when the guard itself is killed."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with_parent(parent: int) -> None:
    """In a process that Python started: end when the thread that started it (``parent``) does."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _children() -> list[int]:
    """Direct children, among them every orphan of the group (we are the subreaper)."""
    path = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    with open(path, encoding="ascii") as listing:  # noqa: PTH123 - no pathlib, starts fast
        return [int(pid) for pid in listing.read().split()]


def _reap(command: "subprocess.Popen[bytes]") -> None:
    """Take the exit status of what has ended, so that it is no child any more."""
    command.poll()
    for pid in _children():
        if pid != command.pid:
            os.waitpid(pid, os.WNOHANG)


def _end_all(command: "subprocess.Popen[bytes]") -> None:
    """End the group, then whatever left it; returns when nothing of it is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _send(os.killpg, command.pid, number)
        known: set[int] = set()
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            _reap(command)
            children = set(_children())
            if not children:
                return
            # Orphans of other groups come to us one by one as their parents end.
            for pid in children - known:
                _send(os.kill, pid, number)
            known |= children
            time.sleep(_POLL_S)


def _send(send: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return


def _owner_gone() -> bool:
    readable, _, _ = select.select([0], [], [], _POLL_S)
    return bool(readable) and os.read(0, 1) == b""


def main(command: list[str]) -> int:
    """Run the command to its end, or to ours; its exit status is negative for a signal."""
    received_signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: received_signals.append(received))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    stdin = subprocess.DEVNULL
    if command[0].startswith("--stdin="):
        stdin = int(command[0].removeprefix("--stdin="))
        command = command[1:]
    child = subprocess.Popen(
        command, stdin=stdin, start_new_session=True, preexec_fn=_die_with_guard
    )
    if stdin != subprocess.DEVNULL:
        os.close(stdin)
    while child.poll() is None and not received_signals and not _owner_gone():
        pass
    _end_all(child)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) & 0xFF)
