"""A database of its own for each test: SQLite, and a PostgreSQL that is started for them."""

from collections.abc import Iterator

import pytest

from hybridwatch.database.connection import DATABASE_FILE, DATABASE_VARIABLE
from hybridwatch.database.decisions import open_triage
from tests.postgres import MISSING, Server, running, schema_of


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    with running() as found:
        if found is None:
            pytest.skip(MISSING)
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path, monkeypatch):
    """The database that the test's results folder has, as people write its URL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/{DATABASE_FILE}"
        return
    with schema_of(request.getfixturevalue("server")) as url:
        monkeypatch.setenv(DATABASE_VARIABLE, url)
        yield url


@pytest.fixture
def triage(place, tmp_path):
    """No decisions yet."""
    with open_triage(tmp_path) as opened:
        yield opened
