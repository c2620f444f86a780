"""One live engine for all tests of this folder: a start costs twenty seconds."""

from pathlib import Path

import pytest

from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS


@pytest.fixture(scope="package")
def pool(scenario, sides, tmp_path_factory):
    """An engine pool with both sides on one engine."""
    work = tmp_path_factory.mktemp("engine")
    with EnginePool(
        scenario, sides, home() / "models", work, print, plugin_settings=SETTINGS
    ) as open_bench:
        yield open_bench


@pytest.fixture
def trial(pool, scenario, tmp_path):
    """Gives a side everything a trial needs."""

    def of(side: int) -> TrialContext:
        pool.make_ready(side)
        return TrialContext(pool, side, Path(tmp_path))

    return of
