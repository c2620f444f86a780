"""A real Ray cluster on this machine; ``make fleet`` installs Ray."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.postgres import running
from tests.shipped import ROOT


@pytest.fixture(scope="module", autouse=True)
def needed():
    """Ray, and a PostgreSQL to start."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: make fleet")
    with running() as server:
        if server is None:
            pytest.skip("no PostgreSQL server to start")


def drained(*words: str) -> str:
    """Call the command that drains a queue on a cluster; what it prints, if all is well."""
    command = [sys.executable, "-m", "tests.unit.orchestration.fleet.on_ray", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_job_has_one_record_from_its_host() -> None:
    said = drained("--jobs", "6", "--nodes", "2", "--seconds", "0")
    assert "6 records, each once, each from its host" in said


@pytest.mark.slow  # a second look at what the drivers that die at any transaction show without Ray
def test_whatever_is_killed_each_job_has_one_record() -> None:
    words = ("--raylets", "2", "--drivers", "1", "--heads", "1", "--databases", "1")
    said = drained("--jobs", "60", "--seconds", "2", *words)
    assert "60 records, each once, each from its host" in said
