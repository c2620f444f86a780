"""Profiles on disk: read back as they were, refused when damaged or too large."""

import gzip
from pathlib import Path

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.store import verdicts
from hybridwatch.records.store.verdicts import find_profile, read_profile, write_profile
from tests.stacks import BUSY


def test_a_profile_comes_back_with_its_passes_in_order(tmp_path: Path) -> None:
    path = find_profile(tmp_path, "epyc-4c", "1f0a9c3e")
    assert read_profile(path) is None
    sides = (BUSY[0] * 2, BUSY[1])  # sixteen passes: 10 comes after 9
    write_profile(path, tmp_path, sides)
    assert path.relative_to(tmp_path).as_posix() == "profiles/epyc-4c/1f0a9c3e.folded.gz"
    assert read_profile(path) == tuple(map(list, sides))
    first = gzip.decompress(path.read_bytes()).decode().splitlines()[0]
    assert first.startswith("baseline;pass 1;loop (core.py:1);step (core.py:9);")


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = find_profile(tmp_path, "epyc-4c", "1f0a9c3e")
    write_profile(path, tmp_path, BUSY)
    before = path.read_bytes()
    with pytest.raises(RecordError, match="1f0a9c3e"):
        write_profile(path, tmp_path, BUSY[::-1])
    assert path.read_bytes() == before


LINE = b"baseline;pass 1;a 1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff", "cannot be read"),
        (LINE + b"other;pass 1;a 1\n", "line 2: expected SIDE;pass N"),
        (b"baseline;pass 100;a 1\n", "line 1: expected"),
        (b"baseline;pass 1;a -1\n", "line 1: expected"),
        (LINE * 100, "expected at most 1000 bytes"),
    ],
)
def test_what_is_no_profile_is_refused_with_its_name(tmp_path, monkeypatch, text, says) -> None:
    monkeypatch.setattr(verdicts, "_MOST_BYTES", 1000)
    path = tmp_path / "x.folded.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(RecordError, match=says) as error:
        read_profile(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("kept", [4, -9])
def test_what_is_no_whole_gzip_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "x.folded.gz"
    path.write_bytes(gzip.compress(LINE)[:kept])
    with pytest.raises(RecordError, match="cannot be read"):
        read_profile(path)
