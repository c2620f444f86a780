"""Triton's interpreter, by which model runner V2 runs on a CPU."""

import math
import subprocess
from pathlib import Path

import pytest

from hybridwatch.engines.builds import named_build
from tests.engine.conftest import BUILD

pytestmark = pytest.mark.engine


def output_of(script: str, *words: str) -> list[str]:
    """What a script beside this file prints in the engine's environment."""
    command = [str(named_build(BUILD).interpreter), str(Path(__file__).with_name(script)), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_mask_of_a_number_and_a_range_is_a_mask() -> None:
    """Prefill checkpoints of vLLM 0.32.0 have such masks, and the engine died of them."""
    assert output_of("masked_kernel.py", "5") == list("12345000")


def test_a_logarithm_of_1_and_little_more_is_not_0() -> None:
    """Samplers up to vLLM 0.30.0 draw with it, and the interpreter had no such function."""
    found = output_of("logarithm_kernel.py", "1e-9", "-0.5")
    assert [float(one) for one in found] == pytest.approx([1e-9, math.log(0.5)], rel=1e-6)
