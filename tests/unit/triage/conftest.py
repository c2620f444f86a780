"""A database of its own for each test: SQLite, and a PostgreSQL if one is named."""

import secrets

import pytest
from sqlalchemy import create_engine

from hybridwatch.triage.database import open_triage
from hybridwatch.triage.database_url import url_of
from tests.unit.triage.builders import TEAM, TEST_VARIABLE


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where decisions are to be kept, as people write it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/triage.sqlite"
        return
    if not TEAM:
        pytest.skip(f"{TEST_VARIABLE} names no PostgreSQL server")
    schema = f"hybridwatch_test_{secrets.token_hex(4)}"
    url = url_of(tmp_path, TEAM)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    try:
        there = url.update_query_dict({"options": f"-csearch_path={schema}"})
        yield there.render_as_string(hide_password=False)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
        engine.dispose()


@pytest.fixture
def triage(place, tmp_path):
    """An empty database."""
    with open_triage(tmp_path, place) as opened:
        yield opened
