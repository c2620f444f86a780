"""A long test is left out only while all that it looks at is as it was when it last passed."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unchanged import ROOT, Subject, note, read, subjects


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a test and what it looks at."""
    for name in ("tests/test_a.py", "src/part/one.py", "src/part/deep/two.py", "src/other.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True)


@pytest.fixture
def subject(repository: Path) -> Subject:
    """It has passed as it is now."""
    fresh = Subject("tests/test_a.py", ("src/part",), "")
    return replace(fresh, passed=fresh.digest(repository))


def test_what_is_as_it_was_is_unchanged(subject: Subject, repository: Path) -> None:
    assert subject.is_unchanged(repository)
    (repository / "src" / "other.py").write_text("changed")
    (repository / "src" / "part" / "made.pyc").write_text("not known to git")
    assert subject.is_unchanged(repository)


@pytest.mark.parametrize("name", ["tests/test_a.py", "src/part/one.py", "src/part/deep/two.py"])
def test_a_change_is_seen_wherever_it_is(subject: Subject, repository: Path, name: str) -> None:
    (repository / name).write_text("changed")
    assert not subject.is_unchanged(repository)


def test_a_file_that_is_new_moved_or_gone_is_seen(subject: Subject, repository: Path) -> None:
    part = repository / "src" / "part"
    (part / "one.py").rename(part / "another.py")
    assert not subject.is_unchanged(repository)
    git(repository, "add", "--all")
    assert not subject.is_unchanged(repository)
    (part / "another.py").rename(part / "one.py")
    git(repository, "add", "--all")
    assert subject.is_unchanged(repository)
    (part / "new.py").write_text("new")
    git(repository, "add", "--all")
    assert not subject.is_unchanged(repository)


def test_a_pass_is_noted_of_the_file_that_passed_and_of_no_other(repository: Path) -> None:
    table = repository / "table.json"
    entry = '"tests/test_{}.py": {{"paths": ["src/part"], "passed": ""}}'
    table.write_text(f"{{{entry.format('a')}, {entry.format('b')}}}")
    (passed, other) = read(table)
    note(passed, table, repository)
    assert [one.is_unchanged(repository) for one in read(table)] == [True, False]
    assert read(table)[1] == other


@pytest.mark.parametrize("noted", subjects(), ids=lambda noted: noted.file)
def test_every_path_that_is_noted_has_files(noted: Subject) -> None:
    """A path without files would never change."""
    for path in (noted.file, *noted.paths):
        words = ["git", "-C", str(ROOT), "ls-files", "--", path]
        assert subprocess.run(words, capture_output=True, check=True).stdout, path
