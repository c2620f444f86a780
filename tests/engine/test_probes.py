"""The host-read probe on planted reads: the count is exact and the call sites are right."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine

SCRIPT = Path(__file__).parent / "planted_reads.py"


def test_every_planted_read_is_counted_once_at_its_place(sides):
    done = subprocess.run(
        [sides[0].spec.interpreter, SCRIPT],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["seen"]["reads_per_step"] == [9, 9]
    assert told["after"] == told["seen"]
    lines = SCRIPT.read_text().splitlines()
    sites = told["seen"]["sites"]
    assert set(sites.values()) == {2}
    places = [site.split(":") for site in sites]
    assert {(file, function) for file, function, _ in places} == {(SCRIPT.name, "planted_step")}
    read = {lines[int(line) - 1].strip() for _, _, line in places}
    assert len(read) == 9
    assert "one.item()" in read
    assert "if one:" in read
    seconds = told["seen"]["site_seconds"]
    assert set(seconds) == set(sites)
    assert all(0 < taken < 60 for taken in seconds.values())
