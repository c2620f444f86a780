"""The database of a results folder, or a copy of it where the folder cannot be written."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hybridwatch.database.connection import Database
from hybridwatch.database.url import find_database_url
from hybridwatch.errors import DatabaseError

_Answer = TypeVar("_Answer")


def with_database(results: Path, work: Callable[[Database], _Answer]) -> _Answer:
    """Do something with the database of a results folder.

    A folder that is read-only, a full disk, and a file that is damaged or no database are no
    obstacle: it is then done with a copy, or from the beginning, and nothing of it stays. ``work``
    may so be begun again with another database. Nothing is made in a folder that does not exist.

    Raises:
        DatabaseError: The server that ``HYBRIDWATCH_DATABASE`` names cannot be used.
        UrlError: It names nothing that can be.
    """
    if not results.is_dir():
        return work(Database.temporary())
    database = Database(find_database_url(results))
    try:
        return work(database)
    except DatabaseError:
        if database.file is None:
            raise
    try:
        return work(Database.temporary(database.file))
    except DatabaseError:
        return work(Database.temporary())
