"""Services on this machine, and databases of their own."""

from collections.abc import Iterator

import pytest

from hybridwatch.database.connection import Database, parsed
from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.sending import Outbox
from tests.unit.database.conftest import place, server
from tests.unit.integrations.notify.services import Services, mail_server, serving

__all__ = ["place", "server"]


@pytest.fixture
def outbox(place) -> Outbox:
    """An empty one: SQLite, then PostgreSQL."""
    made = Outbox(Database(parsed(place, "test"), NotifyError))
    made.keep([])
    return made


@pytest.fixture
def services(monkeypatch) -> Iterator[Services]:
    """All but the mail; the environment knows the way and the secrets."""
    with serving(Services()) as found:
        for name, value in found.variables().items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def mailbox(services):
    """The mail as well."""
    with mail_server(services) as box:
        yield box
