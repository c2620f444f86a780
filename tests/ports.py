"""Ports for servers that cannot choose theirs, each for one test alone.

A port that the system calls free may be another's a moment later: it gives the same range to
all who ask, and to each connection. These lie below that range, and are claimed by a file.
"""

import fcntl
import os
import socket
import tempfile
from itertools import chain
from pathlib import Path
from typing import Final

_RANGE: Final = range(20_000, 32_000)
_claims: list[int] = []
"""Open files: the kernel ends a claim when its process ends, and not before."""


def own_port() -> int:
    """Give a port of loopback that stays with this process to its end."""
    folder = Path(tempfile.gettempdir()) / f"hybridwatch-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    # Processes look from different places on, so that they seldom meet.
    first = os.getpid() * 31 % len(_RANGE)
    for port in chain(_RANGE[first:], _RANGE[:first]):
        claim = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o600)
        if _is_ours(claim) and _is_free(port):
            _claims.append(claim)
            return port
        os.close(claim)
    raise AssertionError(f"no free port in {_RANGE}")


def _is_ours(claim: int) -> bool:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as found:
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
