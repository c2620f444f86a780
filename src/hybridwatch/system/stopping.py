"""Handles signals to stop, so that no running code can lose one.

Python turns a signal into an exception at whatever the main thread is doing, and there it may be
lost: of 6,920 that were raised within requests of an HTTP client 18 came out nowhere. Within
``stoppable`` there is no such exception while a guarded process is there. A thread that the kernel
wakes makes every guard end its processes, whatever the main thread waits for ends with them, and
``require_wanted`` raises ``KeyboardInterrupt`` wherever new work would begin. The thread ends this
process when the main thread has not.
"""

import os
import select
import signal
import subprocess
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from hybridwatch.system import guard

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

PATIENCE_S: Final = guard.GRACE_S + 2.0
"""Time for an end in order. By then the guards have killed what would not end by itself."""

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status of a command that was interrupted, as shells report it."""

_TOO_LATE: Final = b"hybridwatch: interrupted, and ended without waiting any longer\n"

_guards: set["weakref.ref[subprocess.Popen[bytes]]"] = set()
"""Every guard that runs. Weak: one whose owner is lost ends because its standard input closes."""


class _Stop:
    def __init__(self) -> None:
        self.requested = False
        self._signalled, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._see_through, name="stop", daemon=True)
        self._thread.start()
        self._wakeup_before = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self._before = [signal.signal(number, self._interrupt) for number in SIGNALS]

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Raise only where nothing that is waited for would end by itself, and once."""
        first, self.requested = not self.requested, True
        if first and not _running():
            raise KeyboardInterrupt

    def _see_through(self) -> None:
        """In the thread: the kernel wakes it even while the main thread runs no Python."""
        if not self._await_signal(None):
            return
        for process in _running():
            process.terminate()
        self._await_signal(PATIENCE_S)
        if not self._over.is_set():
            with suppress(OSError):
                os.write(2, _TOO_LATE)
            os._exit(INTERRUPTED)

    def _await_signal(self, timeout_s: float | None) -> bool:
        """Wait for one of our signals; False after the time, or when the watch is over."""
        while select.select([self._signalled], [], [], timeout_s)[0]:
            number = os.read(self._signalled, 1)
            if not number:
                return False
            if number[0] in SIGNALS:
                return True
        return False

    def dismantle(self) -> None:
        """Handle signals as before."""
        self._over.set()
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
        os.close(self._wakeup)
        self._thread.join()
        os.close(self._signalled)


def _running() -> list["subprocess.Popen[bytes]"]:
    guards = [reference() for reference in tuple(_guards)]
    return [one for one in guards if one is not None and one.returncode is None]


_stop: _Stop | None = None


@contextmanager
def stoppable() -> Iterator[None]:
    """End everything that is started within when SIGINT or SIGTERM asks for it.

    The first signal reaches all guards at once; without guards it raises ``KeyboardInterrupt``.
    ``PATIENCE_S`` later, or with a second signal, this process ends whatever it is doing, with the
    status ``INTERRUPTED``. A SIGINT counts even where our parent had it ignored, as shells do for
    the background commands of a script: an engine that nothing interrupts is worse.

    For the main thread, and not within itself. After a request the block always ends with
    ``KeyboardInterrupt``, and its process is expected to end.
    """
    global _stop
    _stop = stop = _Stop()
    try:
        yield
    finally:
        # The thread stays after a request: it sees the process through to its very end.
        require_wanted()
        stop.dismantle()
        _stop = None


def require_wanted() -> None:
    """Raise ``KeyboardInterrupt`` if a stop was requested."""
    if _stop is not None and _stop.requested:
        raise KeyboardInterrupt


def end_with_us(process: "subprocess.Popen[bytes]") -> None:
    """Let a guard know when a stop is requested; raise ``KeyboardInterrupt`` if it already was."""
    _guards.add(weakref.ref(process, _guards.discard))
    require_wanted()
