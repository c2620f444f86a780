"""Facts of a machine and a build: one that cannot be had keeps no other back."""

import json
import subprocess
import sys

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch_lab.gpu.facts import _IMPORTING, list_facts
from tests.pretended_nvml import Card, pretend


@pytest.fixture
def look(monkeypatch):
    """Look at a build for a GPU that is not installed, on a pretended driver."""
    pretend(monkeypatch, Card())
    (scenario,) = find(home() / "scenarios", ["gpu/padded-graph-rows"])
    build = parse_label("cuda-0.32.0")
    return lambda: {one.name: one for one in list_facts(build, scenario, home() / "models")}


def test_missing_environment_is_reported_by_each_fact_that_needs_it_and_by_no_other(look):
    facts = look()
    assert list(facts) == ["machine", "driver", "gpus", "imports", "code", "engine"]
    for name in ("machine", "driver", "gpus"):
        assert facts[name].error == "", name
        assert facts[name].found, name
    for name in ("imports", "code", "engine"):
        assert facts[name].error, name


def test_gpu_is_reported_with_its_clocks_and_memory(look):
    (gpu,) = look()["gpus"].found.values()
    assert gpu["name"]
    assert gpu["memory_bytes"] > 0
    assert {"sm_clock_hz", "memory_clock_hz", "power_w", "throttled"} <= set(gpu)


def test_module_is_looked_for_under_each_of_its_names():
    """vLLM has its kernels under another name since 0.24.0; the last is what is missing."""
    names = ("nowhere|json", "nowhere|neither")
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTING, *names], capture_output=True, text=True, check=True
    )
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert "error" not in first["nowhere|json"]
    assert "No module named 'neither'" in second["nowhere|neither"]["error"]


def test_fact_is_one_line_of_json(look):
    for fact in look().values():
        line = fact.to_json()
        assert "\n" not in line
        assert json.loads(line)["name"] == fact.name
