"""Triton's interpreter, by which model runner V2 runs on a CPU."""

import subprocess
from pathlib import Path

import pytest

from hybridwatch.engines.builds import named_build
from tests.engine.conftest import BUILD

pytestmark = pytest.mark.engine


def test_a_mask_of_a_number_and_a_range_is_a_mask() -> None:
    """Prefill checkpoints of vLLM 0.32.0 have such masks, and the engine died of them."""
    script = Path(__file__).with_name("masked_kernel.py")
    words = [str(named_build(BUILD).interpreter), str(script), "5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list("12345000"), done.stderr
