"""The host-sync probe on planted reads and waits: counts are exact and call sites are right."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine

SCRIPT = Path(__file__).parent / "planted_reads.py"
WAITS = Path(__file__).parent / "planted_waits.py"


def read_by(sides, script):
    done = subprocess.run(
        [sides[0].spec.interpreter, script],
        capture_output=True, text=True, timeout=280, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def test_every_planted_read_is_counted_once_at_its_place(sides):
    found = read_by(sides, SCRIPT)
    assert found["seen"]["reads_per_step"] == [9, 9]
    assert found["after"] == found["seen"]
    lines = SCRIPT.read_text().splitlines()
    sites = found["seen"]["sites"]
    assert set(sites.values()) == {2}
    places = [site.split(":") for site in sites]
    assert {(file, function) for file, function, _ in places} == {(SCRIPT.name, "planted_step")}
    read = {lines[int(line) - 1].strip() for _, _, line in places}
    assert len(read) == 9
    assert "one.item()" in read
    assert "if one:" in read
    seconds = found["seen"]["site_seconds"]
    assert set(seconds) == set(sites)
    assert all(0 < taken < 60 for taken in seconds.values())


def test_tensors_that_say_they_are_on_a_device_are_waited_for_and_others_are_not(sides):
    """The CUDA half, on the real methods of torch and tensors of a pretended device."""
    found = read_by(sides, WAITS)
    seen = found["seen"]
    assert seen["reads_per_step"] == [8, 8]
    lines = WAITS.read_text().splitlines()
    waited = {lines[int(site.rpartition(":")[2]) - 1].strip() for site in seen["sites"]}
    begin, end = ("    one.item()", "    host.item()")
    calls = lines[lines.index(begin) : lines.index(end)]
    assert waited == {line.strip() for line in calls if "with suppress" not in line}
    assert sorted(kind for kinds in seen["site_kinds"].values() for kind in kinds) == [
        "bool", "copy", "copy", "copy", "copy", "index", "int", "item",
    ]  # fmt: skip
    assert set(seen["sites"].values()) == {2}
    assert len(seen["step_seconds"]) == len(seen["wait_seconds_per_step"]) == 2
    assert 0 < seen["wait_seconds_per_step"][0] <= seen["step_seconds"][0]
    assert found["modes"] == [1, 0]
    # torch's own events are of a static type; the plugin's can be watched.
    assert found["events"] == [False, True, True]
    assert found["left_nothing"]
