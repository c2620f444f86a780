"""The dashboard's own server, and a browser to look at it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

ROOT: Final = Path(__file__).parents[2]

_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
_STARTING_S: Final = 60
_ENDING_S: Final = 10
_REFUSED: Final = 401
_PROGRAM: Final = (sys.executable, "-c", "from hybridwatch.cli.main import main; main()")


class NoBrowserError(Exception):
    """There is no chromium."""


@dataclass(frozen=True, slots=True)
class Server:
    """A dashboard that answers.

    Attributes:
        address: Where.
        pid: Its process.
    """

    address: str
    pid: int


@contextmanager
def serving(
    results: Path, environment: Mapping[str, str] | None = None, words: Sequence[str] = ()
) -> Iterator[Server]:
    """Run ``hybridwatch dashboard`` over a store on a free port; always ends it.

    Args:
        results: The store.
        environment: Variables beside ours.
        words: Further words of the command.

    Raises:
        RuntimeError: It ended by itself.
        TimeoutError: It did not answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*_PROGRAM, "dashboard", "--results", str(results), "--port", str(port), *words],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_healthy(address, process)
        yield Server(address, process.pid)
    finally:
        _end(process)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's browser; always ends it.

    Raises:
        NoBrowserError: There is none.
    """
    program = shutil.which("chromium")
    if program is None:
        raise NoBrowserError("no chromium on the PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def _wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _STARTING_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):  # noqa: S310
                return
        except urllib.error.HTTPError as error:
            if error.code == _REFUSED:  # asks for a password, so it is there
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.05)
    raise TimeoutError(f"no answer from {address} within {_STARTING_S} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            continue
        return
