"""Tokens of programs that use the API: made here, kept as digests, never shown again.

A token is 256 random bits. These cannot be found by trying, so one SHA-256 keeps them as well as a
slow hash would, which is for words that people choose; and a caller is found by its digest at once.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Row, insert, select, update

from hybridwatch.analysis.alert_decisions import checked_name
from hybridwatch.database.connection import (
    Database,
    UrlError,
    find_database_url,
    reading_kept,
    writing_kept,
)
from hybridwatch.database.schema import TOKEN
from hybridwatch.errors import TokenError, TriageError

_BEGINNING: Final = "hw_"
"""By which people, and what looks for secrets in files, know a token."""
_BYTES: Final = 32


class Scope(Enum):
    """What a token allows; the values are stored."""

    READ = "read"
    INGEST = "ingest"
    TRIAGE = "triage"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept; what is done with it is done under its name.

    ``used_at`` is exact to a minute; a time that is ``None`` is never.
    """

    name: str
    scopes: frozenset[Scope]
    made_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it allows anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def compute_digest(text: str) -> str:
    """Give what is kept of a token."""
    return hashlib.sha256(text.encode()).hexdigest()


class Tokens:
    """The tokens of a results folder. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(
        self, name: str, scopes: Collection[Scope], now: datetime, expires_at: datetime | None
    ) -> str:
        """Make a token and give it; it cannot be read again. Also a revoked one keeps its name."""
        try:
            checked_name("name of the token", name)
        except TriageError as error:
            raise TokenError(str(error)) from None
        if not scopes:
            raise TokenError(f"token {name}: expected a scope, found none")
        if expires_at is not None and expires_at <= now:
            raise TokenError(f"token {name}: expires: expected a time ahead, found {expires_at}")
        text = _BEGINNING + secrets.token_urlsafe(_BYTES)
        row = {
            "name": name,
            "digest": compute_digest(text),
            "scopes": " ".join(sorted(scope.value for scope in scopes)),
            "made_at": now,
            "expires_at": expires_at,
        }
        with writing_kept(self._database) as connection:
            if connection.scalar(select(TOKEN.c.name).where(TOKEN.c.name == name)) is not None:
                raise TokenError(f"token {name}: expected a new name, found one that has a token")
            connection.execute(insert(TOKEN), [row])
        return text

    def by_digest(self) -> Mapping[str, Token]:
        """Give every token, revoked ones too, in order of their names; makes no database."""
        with reading_kept(self._database, TOKEN) as connection:
            if connection is None:
                return {}
            rows = connection.execute(select(TOKEN).order_by(TOKEN.c.name))
            return {row.digest: _token(row) for row in rows}

    def revoke(self, name: str, now: datetime) -> None:
        """Take a token back; ``TokenError`` if none of this name is still valid."""
        if not any(one.name == name and one.is_valid(now) for one in self.by_digest().values()):
            raise TokenError(f"token {name}: expected the name of a valid token, found none")
        self._set(name, {"revoked_at": now})

    def used(self, name: str, now: datetime) -> None:
        """Note that a token was used."""
        self._set(name, {"used_at": now})

    def _set(self, name: str, values: Mapping[str, datetime]) -> None:
        with self._database.writing() as connection:
            connection.execute(update(TOKEN).where(TOKEN.c.name == name).values(**values))


def open_tokens(results: Path) -> Tokens:
    """Open the tokens of a results folder; nothing is made in it before one is made."""
    try:
        return Tokens(Database(find_database_url(results), TokenError))
    except UrlError as error:
        raise TokenError(str(error)) from None


def _token(row: Row[Any]) -> Token:
    facts = row._asdict() | {"scopes": frozenset(map(Scope, row.scopes.split()))}
    return Token(**{name: facts[name] for name in Token.__slots__})
