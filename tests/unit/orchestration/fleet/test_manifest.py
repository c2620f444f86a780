"""The manifest for Kubernetes: what KubeRay's schema leaves open, and a fleet needs."""

import json
import shlex
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybridwatch.system.home import HOME_VARIABLE

FILE = Path(__file__).parents[4] / "ci" / "fleet-raycluster.yaml"


@pytest.fixture
def manifest() -> dict[str, Any]:
    """It, as YAML."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def problems(manifest: dict[str, Any]) -> list[str]:
    """Say what a fleet could not use."""
    spec = manifest["spec"]
    found = []
    if spec["authOptions"]["mode"] != "token":
        found.append("whoever reaches Ray's ports runs code")
    head = spec["headGroupSpec"]["rayStartParams"]
    if "resources" in head or head["num-cpus"] != "0":
        found.append("the head measures")
    for group in spec["workerGroupSpecs"]:
        found += [f"{group['groupName']}: {problem}" for problem in _problems_of(group)]
    return found


def _problems_of(group: dict[str, Any]) -> list[str]:
    start, pod = group["rayStartParams"], group["template"]["spec"]
    (container,) = pod["containers"]
    names = {group["groupName"], group["labels"]["host"]}
    names |= set(pod["nodeSelector"].values())
    (turn,) = shlex.split(start["resources"])  # KubeRay's line is read by a shell
    (home,) = [one["value"] for one in container["env"] if one["name"] == HOME_VARIABLE]
    (mount,) = container["volumeMounts"]
    (volume,) = pod["volumes"]
    counts = [group[key] for key in ("replicas", "minReplicas", "maxReplicas")]
    held = {
        "it is no one host": len(names) == 1 and counts == [1, 1, 1],
        "KubeRay refuses labels there": "labels" not in start,
        "it measures not one thing at a time": json.loads(turn) == {"measurement": 1},
        "its home does not stay": (
            mount["mountPath"] == home
            and mount["name"] == volume["name"]
            and volume["hostPath"]["path"]
        ),
    }
    return [problem for problem, holds in held.items() if not holds]


def test_it_is_a_fleet(manifest) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCluster")
    assert problems(manifest) == []


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("authOptions", "mode"), "disabled", "whoever reaches Ray's ports runs code"),
        (("headGroupSpec", "rayStartParams", "num-cpus"), "1", "the head measures"),
        (("workerGroupSpecs", 0, "labels", "host"), "h100-2", "h100-1: it is no one host"),
        (("workerGroupSpecs", 0, "replicas"), 2, "h100-1: it is no one host"),
        (
            ("workerGroupSpecs", 0, "rayStartParams", "labels"),
            "host=h100-1",
            "h100-1: KubeRay refuses labels there",
        ),
        (
            ("workerGroupSpecs", 0, "rayStartParams", "resources"),
            '"{\\"measurement\\": 2}"',
            "h100-1: it measures not one thing at a time",
        ),
        (
            ("workerGroupSpecs", 0, "template", "spec", "volumes", 0, "name"),
            "other",
            "h100-1: its home does not stay",
        ),
    ],
)
def test_a_defect_is_named(manifest, place, value, problem) -> None:
    bad = deepcopy(manifest)
    spot: Any = bad["spec"]
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    assert problems(bad) == [problem]
