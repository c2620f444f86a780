"""A file that takes the place of another, whole or not at all."""

from pathlib import Path

import pytest

from hybridwatch.system import files as atomic_file
from hybridwatch.system.files import put


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
