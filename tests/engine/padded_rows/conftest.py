"""One live engine for all tests of this folder: a start costs twenty seconds."""

from pathlib import Path

import pytest

from hybridwatch.measurement.bench import Bench
from hybridwatch.measurement.station import Station
from hybridwatch.system.home import home
from hybridwatch_lab.in_engine import SETTINGS


@pytest.fixture(scope="package")
def bench(scenario, sides, tmp_path_factory):
    """A bench with both sides on one engine."""
    work = tmp_path_factory.mktemp("engine")
    with Bench(scenario, sides, home() / "models", work, print, told=SETTINGS) as open_bench:
        yield open_bench


@pytest.fixture
def station(bench, scenario, tmp_path):
    """Gives a side everything a trial needs."""

    def of(side: int) -> Station:
        bench.make_ready(side)
        return Station(bench, side, Path(tmp_path))

    return of
