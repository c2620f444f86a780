"""How much of their noise the metrics of recorded runs have in common."""

from pathlib import Path

import numpy as np
import pytest

from hybridwatch.records.store import write_run
from hybridwatch_lab.calibration.families import correlations_in
from tests.builders import a_run

TIMED = ("ttft", "itl", "e2el", "tpot", "output_throughput", "metadata_build_time")


def run_with(shared: float, blocks: int = 10):
    rng = np.random.default_rng(3)

    def side():
        common = rng.standard_normal(blocks)
        own = rng.standard_normal((len(TIMED), blocks))
        noise = 0.03 * (np.sqrt(shared) * common + np.sqrt(1 - shared) * own)
        return {name: tuple(np.exp(row).tolist()) for name, row in zip(TIMED, noise, strict=True)}

    return a_run(side(), side())


@pytest.mark.parametrize(("shared", "least", "most"), [(0.0, 0.0, 0.4), (1.0, 0.99, 1.0)])
def test_noise_in_common_is_seen_and_noise_of_their_own_is_not(tmp_path: Path, shared, least, most):
    write_run(tmp_path, run_with(shared))
    (found,) = correlations_in(tmp_path)
    assert least <= found <= most


def test_a_run_of_few_blocks_says_nothing(tmp_path: Path):
    write_run(tmp_path, run_with(1.0, blocks=6))
    assert list(correlations_in(tmp_path)) == []
