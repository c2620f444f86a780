"""The API over a PostgreSQL: what it reads, tokens, what it writes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.alert_decisions import TriageAction
from hybridwatch.client import Client, RefusedError
from hybridwatch.database.tokens import Scope, open_tokens
from hybridwatch.database.url import DATABASE_FILE, DATABASE_VARIABLE
from hybridwatch.records.codec import encode
from tests.builders import BASELINE, NIGHTLY, a_run
from tests.postgres import MISSING, running, schema_of
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.database.stores import add


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store whose database is on a server, in a schema of its own."""
    with running() as server:
        if server is None:
            pytest.skip(MISSING)
        with schema_of(server) as url:
            monkeypatch.setenv(DATABASE_VARIABLE, url)
            add(tmp_path, 1, builds=(BASELINE, NIGHTLY))
            add(tmp_path, 2, slower=1.3, builds=(BASELINE, NIGHTLY))
            yield tmp_path
            assert not (tmp_path / DATABASE_FILE).exists()


def test_everything_is_there_and_can_be_done(results, monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.api.access._LOOK_S", 0.0)
    monkeypatch.setattr("hybridwatch.api.view._MOST_SHARE", float("inf"))
    shown = token_for(results, *Scope)["authorization"].removeprefix("Bearer ")
    app = app_over(results, reads_need_one=True)
    with serving(app) as http, Client(str(http.base_url), shown) as client:
        assert client.report(next(client.runs()).run_id).bad_news
        series = next(client.series(metric="ttft"))
        assert len(list(client.levels(series.id))) == 2 * series.runs
        record = encode(replace(a_run({"ttft": (1.0, 2.0)}), id="bbbbbbbb")).record
        assert [client.add_run(record).is_new for _ in range(2)] == [True, False]
        alert = next(client.alerts())
        assert client.decide(alert, TriageAction.NOTE, "seen").decisions[-1].who == "robot"
        with pytest.raises(RefusedError, match="409"):
            client.decide(alert, TriageAction.NOTE, "too late")
        (token,) = open_tokens(results).by_digest().values()
        assert token.used_at is not None
        open_tokens(results).revoke("robot", token.used_at)
        with pytest.raises(RefusedError, match="401"):
            next(client.runs())
