"""Where decisions are kept: a file beside the records, or a team's database."""

from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hybridwatch.errors import TriageError

TRIAGE_VARIABLE: Final = "HYBRIDWATCH_TRIAGE"
"""Environment variable that names another database, as a URL."""
TRIAGE_FILE: Final = "triage.sqlite"

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
"""What people write, and the driver that is meant."""


def url_of(results: Path, given: str = "") -> URL:
    """Find the database.

    Args:
        results: The results folder.
        given: What ``--triage`` or ``HYBRIDWATCH_TRIAGE`` says; empty for the file beside the
            records.

    Raises:
        TriageError: This is no URL of a database that can be used. The text is not repeated: it
            may hold a password.
    """
    if not given:
        return URL.create("sqlite+pysqlite", database=str((results / TRIAGE_FILE).absolute()))
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise TriageError(_expected("something that is no such URL")) from None
    scheme, _, driver = url.drivername.partition("+")
    if scheme not in _DRIVERS or driver not in {"", _DRIVERS[scheme].partition("+")[2]}:
        raise TriageError(_expected(f"one of {url.drivername!r}"))
    if scheme == "sqlite":
        _check_file(url)
    return url.set(drivername=_DRIVERS[scheme])


def shown(url: URL) -> str:
    """Name a database for people: no password, and no options, which may hold one too."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(query={}).render_as_string(hide_password=True)


def secrets_of(url: URL) -> tuple[str, ...]:
    """List the passwords in a URL, the longest first."""
    found = {url.password or ""}
    for option, value in url.query.items():
        if "pass" in option:
            found |= {value} if isinstance(value, str) else set(value)
    return tuple(sorted(found - {""}, key=len, reverse=True))


def _check_file(url: URL) -> None:
    database = url.database or ":memory:"
    if database == ":memory:" or database.startswith("file:"):
        raise TriageError(_expected("a SQLite database that is no plain file"))
    if url.query or url.host:
        raise TriageError(_expected("a host or options for a SQLite file"))


def _expected(found: str) -> str:
    return (
        f"{TRIAGE_VARIABLE} or --triage: expected sqlite:///FILE or "
        f"postgresql://USER:PASSWORD@HOST/DATABASE, found {found}"
    )
