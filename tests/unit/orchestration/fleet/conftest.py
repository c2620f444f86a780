"""Queues in databases of their own, and fleets whose time passes at once."""

import pytest

from hybridwatch.database.connection import Database, parsed
from tests.unit.database.conftest import place, server
from tests.unit.orchestration.fleet.simulated import Machine, Simulated, World

__all__ = ["place", "server"]


@pytest.fixture
def database(place):
    """An empty one: SQLite, then PostgreSQL."""
    return Database(parsed(place, "test"))


@pytest.fixture
def make_world(tmp_path):
    """Makes a fleet with its queue in a file."""

    def make(hosts=3, **changes) -> World:
        names = hosts if isinstance(hosts, dict) else {f"h{n}": Machine() for n in range(hosts)}
        url = parsed(f"sqlite:///{tmp_path}/queue.sqlite", "test")
        return World(Database(url), tmp_path, Simulated(names, **changes))

    return make
