"""A server over a store with a regression that somebody has answered."""

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import open_index
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.checkout import Checkout
from hybridwatch.records.store import write_run
from tests.builders import BASELINE, NIGHTLY, a_run
from tests.unit.analysis.alerts.builders import acknowledge
from tests.unit.api.serving import app_over, serving
from tests.unit.database.stores import add

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ALONE = "aaaaaaaa"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four comparisons, of which the last is slower, and a run of one build."""
    results: Path = tmp_path_factory.mktemp("store")
    for number in range(1, 4):
        add(results, number, builds=(BASELINE, NIGHTLY))
    add(results, 4, slower=1.3, builds=(BASELINE, NIGHTLY))
    write_run(results, replace(a_run({"output_throughput": (10.0, 11.0)}), id=ALONE))
    alerts = find_alerts(results, open_index(results), Checkout(), NOW)
    with open_triage(results) as triage:
        triage.decide(alerts[0], acknowledge("known since 0.28"), "ada", NOW)
    return results


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[httpx.Client]:
    with serving(app_over(store)) as speaking:
        yield speaking


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store and tokens are looked at for every request."""
    for module in ("app", "view"):
        monkeypatch.setattr(f"hybridwatch.api.{module}._LOOK_S", 0.0)
    monkeypatch.setattr("hybridwatch.api.view._MOST_SHARE", math.inf)
