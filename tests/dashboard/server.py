"""The dashboard's own server, and a browser to look at it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from tests.shipped import ROOT
from tests.waiting import wait_until

_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
_LIMIT_S: Final = 120
"""Ends what hangs."""
_ENDING_S: Final = 10
_PORTS: Final = 3
"""To be tried."""
_REFUSED: Final = 401
_PROGRAM: Final = (sys.executable, "-c", "from hybridwatch.cli.main import main; main()")


class NoBrowserError(Exception):
    """There is no chromium."""


@dataclass(frozen=True, slots=True)
class Server:
    """A dashboard that answers."""

    address: str
    pid: int


@contextmanager
def serving(
    results: Path, environment: Mapping[str, str] | None = None, words: Sequence[str] = ()
) -> Iterator[Server]:
    """Run ``hybridwatch dashboard`` over a store on a free port; always ends it."""
    told = [*_PROGRAM, "dashboard", "--results", str(results), *words]
    for left in reversed(range(_PORTS)):
        port = _free_port()
        process = subprocess.Popen(
            [*told, "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            if _is_healthy(address, process, left):
                yield Server(address, process.pid)
                return
        finally:
            _end(process)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        assert isinstance(port, int)
        return port


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's browser; always ends it."""
    program = shutil.which("chromium")
    if program is None:
        raise NoBrowserError("no chromium on the PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def _is_healthy(address: str, process: subprocess.Popen[bytes], left: int) -> bool:
    """Wait for a server; false, if it ended and may be tried on another port.

    Its port may be gone by the time that it asks for it.
    """

    def answers() -> bool:
        if process.poll() is not None:
            return True
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=_LIMIT_S):  # noqa: S310
                return True
        except urllib.error.HTTPError as error:
            return error.code == _REFUSED  # asks for a password, so it is there
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    wait_until(answers, f"an answer from {address}", limit_s=_LIMIT_S)
    if process.poll() is None:
        return True
    if not left:
        raise RuntimeError(f"the server ended with status {process.returncode}")
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            continue
        return
