"""Which commit a tree of vLLM is at, and what differs from it, on real git trees."""

import subprocess

import pytest
from hybridwatch_engine.revision import ORIGIN, read_revision


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ("git", "-C", folder, *who, *words), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    """A package in a tree of one commit."""
    folder = tmp_path / "checkout" / "vllm"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "engine.py").write_text("a = 1\n")
    git(folder.parent, "init", "-q")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "-qm", "first")
    return folder


def test_clean_tree_is_known_by_its_commit(package):
    assert read_revision(package) == {"revision": git(package, "rev-parse", "HEAD")}


def test_edited_restored_and_otherwise_edited_trees_are_told_apart(package):
    clean = read_revision(package)
    (package / "engine.py").write_text("a = 2\n")
    edited = read_revision(package)
    (package / "engine.py").write_text("a = 3\n")
    otherwise = read_revision(package)
    (package / "engine.py").write_text("a = 1\n")
    assert read_revision(package) == clean
    assert edited["revision"] == otherwise["revision"] == clean["revision"]
    assert len({edited["diff_digest"], otherwise["diff_digest"]}) == 2


def test_file_that_nobody_added_to_git_counts_and_an_ignored_one_does_not(package):
    clean = read_revision(package)
    (package.parent / ".gitignore").write_text("*.so\n")
    (package / "_C.so").write_bytes(b"compiled")
    assert read_revision(package) == clean
    (package / "new.py").write_text("")
    assert "diff_digest" in read_revision(package)


def test_package_that_only_lies_below_a_checkout_has_no_commit(package):
    installed = package.parent / "env" / "vllm"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert read_revision(installed) == {}


def test_package_outside_of_git_has_no_commit(tmp_path):
    assert read_revision(tmp_path) == {}


def test_copied_tree_is_what_was_noted_when_it_was_copied(package):
    (package.parent / ORIGIN).write_text('{"revision": "abc", "diff_digest": "def"}')
    assert read_revision(package) == {"revision": "abc", "diff_digest": "def"}
