"""Bad input is met with one clear line on standard error and exit status 2; nothing is started."""

import shutil
import subprocess
import sys

import pytest

from hybridwatch.engines.builds import DEFAULT_BUILD
from tests.shipped import ROOT
from tests.waiting import LIMIT_S

GOLDEN_RECORD = ROOT / "tests" / "golden" / "record" / "v1.json"


@pytest.fixture
def home(tmp_path):
    """A checkout with scenarios and builds, and no environment installed."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "home" / "scenarios")
    shutil.copytree(
        ROOT / "engine", tmp_path / "home" / "engine", ignore=shutil.ignore_patterns("src")
    )
    (tmp_path / "home" / "models").symlink_to(ROOT / "models")
    return tmp_path / "home"


def complaint(home, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "hybridwatch", *map(str, arguments)],
        cwd=home, env={"HYBRIDWATCH_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_scenario_with_an_unknown_key(home):
    path = home / "scenarios" / "smoke" / "padded-graph-rows.toml"
    path.write_text(path.read_text().replace("[engine]", "[engine]\nmax_num_sequences = 3"))
    for arguments in (["scenarios", "--check"], ["run", "smoke"]):
        line = complaint(home, *arguments)
        assert "padded-graph-rows.toml" in line
        assert "engine.max_num_sequences: unknown key" in line
        assert "max_num_seqs" in line


def test_unknown_scenario(home):
    assert "padded-graph-rows" in complaint(home, "run", "smoke/padded-graph-row")


def test_build_that_is_not_installed(home):
    line = complaint(home, "run", "smoke")
    assert f"{DEFAULT_BUILD} is missing" in line
    assert f"hybridwatch engine install {DEFAULT_BUILD}" in line


def test_unknown_build(home):
    assert "cpu-0.27.1" in complaint(home, "run", "smoke", "--build", "cpu-0.27")


def test_record_cut_in_half(home, tmp_path):
    whole = GOLDEN_RECORD.read_bytes()
    half = tmp_path / "half.json"
    half.write_bytes(whole[: len(whole) // 2])
    for verb in ("compare", "gate", "comment"):
        flags = ["--dry-run"] if verb == "comment" else []
        assert "half.json" in complaint(home, verb, half, *flags)


def test_results_folder_that_is_a_file(home, tmp_path):
    """Refused before anything else is looked at, in the words of every option that is wrong."""
    in_the_way = tmp_path / "results"
    in_the_way.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "hybridwatch", "run", "smoke", "--results", str(in_the_way)],
        cwd=home, env={"HYBRIDWATCH_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--results" in done.stderr.splitlines()[-1]
    assert str(in_the_way) in done.stderr.splitlines()[-1]
    assert done.stdout == ""
