"""Where the database is: a file in the results folder, or a team's server."""

import os
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hybridwatch.errors import HybridwatchError

DATABASE_VARIABLE: Final = "HYBRIDWATCH_DATABASE"
"""Environment variable that names another database, as a URL."""
DATABASE_FILE: Final = "hybridwatch.sqlite"

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
"""What people write, and the driver that is meant."""


class UrlError(HybridwatchError):
    """A text is no URL of a database that can be used; it is not repeated, for its password."""


def find_database_url(results: Path) -> URL:
    """Find the database of a results folder.

    Raises:
        UrlError: What the environment says cannot be used.
    """
    given = os.environ.get(DATABASE_VARIABLE, "")
    if not given:
        return file_url(results / DATABASE_FILE)
    return parsed(given, DATABASE_VARIABLE)


def file_url(path: Path) -> URL:
    """Name a SQLite file."""
    return URL.create("sqlite+pysqlite", database=str(path.absolute()))


def parsed(given: str, where: str) -> URL:
    """Read a URL as people write it; the ``UrlError`` says ``where`` it was given."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise UrlError(_expected(where, "something that is no such URL")) from None
    scheme, _, driver = url.drivername.partition("+")
    if scheme not in _DRIVERS or driver not in {"", _DRIVERS[scheme].partition("+")[2]}:
        raise UrlError(_expected(where, f"one of {url.drivername!r}"))
    if scheme == "sqlite":
        _check_file(url, where)
    return url.set(drivername=_DRIVERS[scheme])


def shown(url: URL) -> str:
    """Name a database for people: no password, and no options, which may hold one too."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(query={}).render_as_string(hide_password=True)


def find_secrets(url: URL) -> tuple[str, ...]:
    """List the passwords in a URL, the longest first."""
    found = {url.password or ""}
    for option, value in url.query.items():
        if "pass" in option:
            found |= {value} if isinstance(value, str) else set(value)
    return tuple(sorted(found - {""}, key=len, reverse=True))


def _check_file(url: URL, where: str) -> None:
    database = url.database or ":memory:"
    if database == ":memory:" or database.startswith("file:"):
        raise UrlError(_expected(where, "a SQLite database that is no plain file"))
    if url.query or url.host:
        raise UrlError(_expected(where, "a host or options for a SQLite file"))


def _expected(where: str, found: str) -> str:
    return (
        f"{where}: expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, "
        f"found {found}"
    )
