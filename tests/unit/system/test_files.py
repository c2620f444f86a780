"""A file that takes the place of another, whole or not at all; one process at a time."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hybridwatch.system import files as atomic_file
from hybridwatch.system.files import claimed, put


def test_file_takes_the_place_of_another(tmp_path):
    put(tmp_path / "a", b"first")
    put(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_file_that_was_there_stays_when_the_disk_is_full(tmp_path, monkeypatch):
    put(tmp_path / "a", b"first")

    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_file, "_sync", full)
    with pytest.raises(OSError, match="No space left"):
        put(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


HOLD = """
import sys
from pathlib import Path
from hybridwatch.system.files import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(file):
    """A process that has claimed a file."""
    command = [sys.executable, "-c", HOLD, str(file)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_file_belongs_to_one_process_until_that_ends(tmp_path):
    file = tmp_path / "claim"
    with holder(file) as process:
        with claimed(file) as is_ours:
            assert not is_ours
        process.kill()
    with claimed(file) as is_ours:
        assert is_ours


def test_who_waits_gets_it_in_the_end(tmp_path):
    file = tmp_path / "claim"

    def wait():
        with claimed(file, wait=True) as is_ours:
            return is_ours

    with holder(file) as process, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        process.communicate("\n")
        assert waiting.result(30)
