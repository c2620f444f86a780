"""A process group of ours: guarded, logged, and ended without remains."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hybridwatch.engine import guard

TAIL_LINES = 40
_END_S = 2 * guard.GRACE_S + 5.0


class GuardedProcess:
    """A command under the guard (``engine.guard``), its output in a log file.

    The guard ends the whole group when we close its standard input, on purpose or by dying.

    Args:
        command: Program and arguments.
        log: File that gets what the command prints on both streams, or on standard error alone
            when ``answers`` is set.
        environment: Variables on top of this process's own.
        answers: Give the command a pipe for standard input and one for standard output.

    Raises:
        OSError: The guard could not be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        *,
        answers: bool = False,
    ) -> None:
        self.log = log
        self.requests: IO[str] | None = None
        inherited: tuple[int, ...] = ()
        options: list[str] = []
        if answers:
            theirs, ours = os.pipe()
            inherited, options = (theirs,), [f"--stdin={theirs}"]
            self.requests = os.fdopen(ours, "w", encoding="utf-8")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-S", guard.__file__, *options, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if answers else output,
                stderr=output,
                env={**os.environ, **environment},
                pass_fds=inherited,
                # A group of its own: Ctrl-C reaches us, and we end the group in order.
                process_group=0,
                text=True,
            )
        for descriptor in inherited:
            os.close(descriptor)
        self.responses = self._process.stdout

    @property
    def exit_status(self) -> int | None:
        """``None`` while it runs."""
        return self._process.poll()

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the log; empty when there is none."""
        try:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                return "".join(deque(log, maxlen=lines))
        except OSError:
            return ""

    def stop(self) -> None:
        """End the group and wait until nothing of it is left; may be called again."""
        for stream in (self.requests, self._process.stdin):
            if stream is not None and not stream.closed:
                # The other end may be gone already; closing is all we want.
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            # The guard is stuck; the kernel then ends the command with it (PR_SET_PDEATHSIG).
            self._process.kill()
            self._process.wait()
        if self.responses is not None:
            self.responses.close()
