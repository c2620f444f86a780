"""The queue that a verb means."""

from pathlib import Path

from hybridwatch.database.connection import Database
from hybridwatch.database.url import find_database_url
from hybridwatch.orchestration.fleet.job_queue import JobQueue


def open_queue(results: Path, tries: int = 3) -> JobQueue:
    """Open the queue of a results folder.

    Raises:
        UrlError: The environment names a database that cannot be used.
    """
    return JobQueue(Database(find_database_url(results)), tries=tries)
