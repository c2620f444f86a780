"""A bundle from a stranger: ours is taken, everything else is refused whole."""

import gzip
import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hybridwatch.errors import GithubError
from hybridwatch.integrations.github import record_bundle
from hybridwatch.integrations.github.record_bundle import NUMBER_FILE, unpack
from hybridwatch.records import bulk_lines
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.records.store.verdicts import find_profile, read_profile
from tests.builders import a_run
from tests.stacks import BUSY, put_profile

RUN = a_run({"accuracy.recall": "110"}, {"accuracy.recall": "111"})
RECORD = "records/epyc-4c/20260301T120000Z-x-1f0a9c3e.json"


@pytest.fixture
def packed(tmp_path: Path) -> Callable[..., Path]:
    """Pack files, by default what our own job would pack, with more or others."""

    def pack(**more: bytes) -> Path:
        results = tmp_path / "measured"
        if not results.exists():
            write_run(results, RUN)
        path = tmp_path / "bundle.zip"
        files = {NUMBER_FILE: b"7\n"} | {
            file.relative_to(results).as_posix(): file.read_bytes()
            for file in sorted(results.rglob("*"))
            if file.is_file()
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, content in (files | more).items():
                zipped.writestr(name, content)
        return path

    return pack


def test_a_bundle_of_ours_becomes_a_results_folder(packed, tmp_path) -> None:
    assert unpack(packed(), tmp_path / "new") == 7
    (record,) = list_records(tmp_path / "new")
    assert read_run(record) == RUN


def test_a_profile_comes_along(packed, tmp_path) -> None:
    put_profile(tmp_path / "measured", RUN)
    write_run(tmp_path / "measured", RUN)
    unpack(packed(), tmp_path / "new")
    assert read_profile(find_profile(tmp_path / "new", RUN.testbed.id, RUN.id)) == tuple(
        map(list, BUSY)
    )


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"no stack\n", mtime=0)])
def test_a_profile_that_is_none_is_refused(packed, tmp_path, content) -> None:
    with pytest.raises(GithubError, match=r"x\.folded\.gz: cannot be read"):
        unpack(packed(**{"profiles/epyc-4c/x.folded.gz": content}), tmp_path / "new")


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json",
        "/etc/evil.json",
        "records/../../evil.json",
        "records/epyc-4c/../../../evil.json",
        "records/epyc-4c/deeper/evil.json",
        "records//epyc-4c/evil.json",
        "records/epyc-4c/.evil.json",
        "records/epyc-4c/evil.py",
        "records\\epyc-4c\\evil.json",
        "records/epyc 4c/evil.json",
        "records/..",
        "profiles/epyc-4c/evil.json",
        "profiles/evil.folded.gz",
        "records/epyc-4c/evil.folded.gz",
        "records/epyc-4c/deeper/",
        "elsewhere/",
        "conftest.py",
    ],
)
def test_no_other_name_and_no_other_place(packed, tmp_path, name) -> None:
    with pytest.raises(GithubError, match="expected nothing but records"):
        unpack(packed(**{name: b"{}"}), tmp_path / "new")
    assert not (tmp_path / "new").exists(), "looked at before anything is written"
    assert not list(tmp_path.rglob("evil*"))


def test_folders_may_be_named(packed, tmp_path) -> None:
    assert unpack(packed(**{"records/": b"", "records/epyc-4c/": b""}), tmp_path / "new") == 7


def test_no_link(packed, tmp_path) -> None:
    path = packed()
    link = zipfile.ZipInfo(RECORD)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.writestr(link, "/etc/passwd")
    with pytest.raises(GithubError, match="expected nothing but records"):
        unpack(path, tmp_path / "new")


def test_no_flood_of_files(packed, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(record_bundle, "MOST_FILES", 2)
    with pytest.raises(GithubError, match="at most 2 files"):
        unpack(packed(), tmp_path / "new")


def test_no_flood_of_data_whatever_the_sizes_say(packed, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(record_bundle, "MOST_BYTES", 100_000)
    with pytest.raises(GithubError, match="at most 100000 bytes"):
        unpack(packed(**{RECORD: b" " * 200_000}), tmp_path / "new")


def test_no_flood_inside_the_answers(packed, tmp_path, monkeypatch) -> None:
    """Small in the ZIP file, small on the disk, and large once it is read."""
    monkeypatch.setattr(bulk_lines, "MOST_UNZIPPED_BYTES", 5_000_000)
    flood = gzip.compress(b"\0" * 50_000_000)
    assert len(flood) < 100_000
    with pytest.raises(GithubError, match="at most 5000000 bytes"):
        unpack(packed(**{RECORD.replace(".json", ".bulk.jsonl.gz"): flood}), tmp_path / "new")


@pytest.mark.parametrize("tail", [b"", b"more"])
def test_answers_are_one_whole_gzip_member(packed, tmp_path, tail) -> None:
    content = gzip.compress(b"{}\n") + tail if tail else gzip.compress(b"{}\n")[:-4]
    with pytest.raises(GithubError, match="gzip: one whole member"):
        unpack(packed(**{RECORD.replace(".json", ".bulk.jsonl.gz"): content}), tmp_path / "new")


@pytest.mark.parametrize("content", [b"{}", b"not json", b"[" * 100_000])
def test_every_record_decodes(packed, tmp_path, content) -> None:
    with pytest.raises(GithubError, match=r"bundle: .*x-1f0a9c3e\.json: "):
        unpack(packed(**{RECORD: content}), tmp_path / "new")


def test_a_record_with_an_unknown_key_is_refused(packed, tmp_path) -> None:
    path = packed()
    with zipfile.ZipFile(path) as zipped:
        (name,) = [name for name in zipped.namelist() if name.endswith(".json")]
        record = json.loads(zipped.read(name))
    with pytest.raises(GithubError, match="expected no such key"):
        unpack(packed(**{name: json.dumps(record | {"html": "<b>"}).encode()}), tmp_path / "new")


@pytest.mark.parametrize(
    ("key", "value"),
    [("version", 2**31), ("version", 10**400), ("memory_bytes", 10**400), ("id", "x" * 10**7)],
)
def test_a_record_out_of_bounds_is_refused_whatever_its_digest_says(
    packed, tmp_path, key, value
) -> None:
    with zipfile.ZipFile(packed()) as zipped:
        (name,) = [name for name in zipped.namelist() if name.endswith(".json")]
        record = json.loads(zipped.read(name))
    record["scenario" if key == "version" else "testbed"][key] = value
    path = packed(**{name: render_sealed(record).encode()})
    with pytest.raises(GithubError, match=rf"bundle: .*\.{key}: expected .*, found ") as error:
        unpack(path, tmp_path / "new")
    assert len(str(error.value)) < 500


def test_a_damaged_record_is_refused(packed, tmp_path) -> None:
    with zipfile.ZipFile(packed()) as zipped:
        (name,) = [name for name in zipped.namelist() if name.endswith(".json")]
        record = zipped.read(name)
    with pytest.raises(GithubError, match=r"sha256: expected .*the file is not as it was written"):
        unpack(packed(**{name: record.replace(b'"cores": 4', b'"cores": 8')}), tmp_path / "new")


def test_a_bundle_of_gigabytes_or_a_pipe_is_refused_by_its_size(tmp_path) -> None:
    path = tmp_path / "bundle.zip"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(GithubError, match="expected at most"):
        unpack(path, tmp_path / "new")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GithubError, match="expected a regular file, found a pipe"):
        unpack(path, tmp_path / "new")


@pytest.mark.parametrize("content", [b"", b"0", b"-1", b"7; rm -rf /", b"9" * 12, b"\xff", b"7\n8"])
def test_the_number_is_a_number(packed, tmp_path, content) -> None:
    with pytest.raises(GithubError, match="expected a number"):
        unpack(packed(**{NUMBER_FILE: content}), tmp_path / "new")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn"])
def test_a_torn_file_is_refused(tmp_path, content) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(content)
    with pytest.raises(GithubError, match="a whole ZIP file"):
        unpack(path, tmp_path / "new")


def test_nothing_is_written_over(packed, tmp_path) -> None:
    (tmp_path / "new").mkdir()
    with pytest.raises(GithubError, match="no such folder yet"):
        unpack(packed(), tmp_path / "new")


@pytest.mark.parametrize("good", [True, False])
def test_as_a_program_it_prints_the_number_and_nothing_else(packed, tmp_path, good) -> None:
    path = packed() if good else packed(**{"evil.sh": b""})
    done = subprocess.run(
        [sys.executable, "-m", record_bundle.__name__, path, tmp_path / "new"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == ((0, "7\n") if good else (1, ""))
    assert done.stderr.startswith("" if good else "hybridwatch: bundle: expected nothing but")


def test_a_flood_of_entries_is_refused_before_they_are_listed(
    packed, tmp_path, monkeypatch
) -> None:
    path = packed()
    with zipfile.ZipFile(path, "a") as zipped:
        for at in range(record_bundle.MOST_FILES + 2):
            zipped.writestr(f"records/epyc-4c/{at}.json", b"{}")
    monkeypatch.setattr("hybridwatch.integrations.github.record_bundle.zipfile.ZipFile", None)
    with pytest.raises(GithubError, match="at most 200 files"):
        unpack(path, tmp_path / "new")


def test_a_small_bundle_that_holds_a_large_record_takes_little(packed, tmp_path) -> None:
    flood = b'{"x":[' + b'{"a":1},' * 4_000_000 + b"1]}"
    path = packed(**{RECORD: flood})
    assert path.stat().st_size < 100_000
    with pytest.raises(GithubError, match="at most 200000 lists, objects and keys"):
        unpack(path, tmp_path / "new")
