"""The kernels of model runner V2 over whole arrays, against Triton's interpreter; no engine."""

import json
import os
import subprocess

import pytest

from hybridwatch_lab.in_engine import variables

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("V2's kernels have changed, so each is held against Triton's interpreter"),
]

STAND_INS = 26
"""Of 32: the rest are of kernels that 0.27.1 has not, or has otherwise."""


@pytest.fixture(scope="module")
def told(sides):
    """What the comparison says, with each defect planted and with none."""
    words = ("-m", "hybridwatch_engine_lab.studies.kernels.runner_launches", "--defects", "--json")
    done = subprocess.run(
        [str(sides[0].spec.interpreter), *words],
        env={**os.environ, **variables()},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_a_stand_in_writes_is_what_the_interpreter_writes(told):
    assert told["failures"] == []
    assert all(worst["cases"] for worst in told["worst"])


def test_every_stand_in_has_served(told):
    assert told["unserved"] == []
    assert len(told["defects"]) == STAND_INS


def test_a_defect_in_any_of_them_is_found(told):
    assert [name for name, found in told["defects"].items() if not found] == []
