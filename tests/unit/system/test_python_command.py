"""What we start loads nothing that lies where a person works."""

import ast
import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from hybridwatch.database import writing
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch.system.python_command import python_command

ROOT = Path(__file__).parents[3]
PLACES = ("src", "lab/src", "lab/engine", "engine/src", "dashboard", "benchmarks", "locks")


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """The working folder, in which a file is called as a module of the standard library."""
    for name in ("json", "subprocess", "signal", "pickle", "argparse"):
        sprung = f"import os\nos.mkdir({str(tmp_path / 'sprung')!r})\nraise SystemExit(3)\n"
        (tmp_path / f"{name}.py").write_text(sprung)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("hybridwatch", "--version"),
        ("hybridwatch.database.writing", str(os.getpid())),
        ("hybridwatch.measurement.accuracy.evaluate", "--help"),
        ("hybridwatch.engines.pair_proxy", "--help"),
        ("hybridwatch_engine.serve", "--help"),
        ("hybridwatch_engine.load_client",),
        ("hybridwatch_engine.hub", "nothing"),
        ("hybridwatch_lab.calibration.recording.neighbour", "--help"),
        ("pip", "--version"),
        ("venv", "--help"),
    ],
    ids=lambda words: words[0],
)
def test_a_child_loads_nothing_of_the_working_folder(trapped, words):
    subprocess.run(
        python_command("-m", *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert not (trapped / "sprung").exists()


def test_the_guard_and_the_worker_of_the_database_load_nothing_of_it(trapped):
    guarded = GuardedProcess(python_command("-c", "import json"), trapped / "log", {})
    assert guarded.wait(60) == 0
    guarded.stop()
    worker = writing._Worker()
    assert worker.read([]) == []
    worker.end()
    assert not (trapped / "sprung").exists()


def unsafe(path: Path) -> Iterator[str]:
    """Lines in which an interpreter is given a module or code and no word that keeps it safe."""
    for node in ast.walk(ast.parse(path.read_text())):
        words = getattr(node, "elts", None) or getattr(node, "args", None)
        if not isinstance(words, list):
            continue
        said = [getattr(word, "value", None) for word in words]
        for before, word in pairwise(said):
            if word in ("-m", "-c") and before not in ("-P", "-I"):
                yield f"{path.relative_to(ROOT)}: {ast.unparse(node)}"


def test_no_child_is_called_in_another_way():
    paths = [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]
    found = [line for path in paths for line in unsafe(path)]
    # What a person is to type is no call of ours.
    assert [line for line in found if "cli/main.py" not in line] == []
    for script in (ROOT / "ci").glob("*.sh"):
        assert 'python" -m' not in script.read_text()
