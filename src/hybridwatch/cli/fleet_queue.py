"""The queue that a verb means."""

from pathlib import Path

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job_queue import JobQueue


def open_queue(results: Path, tries: int = 3) -> JobQueue:
    """Open the queue of a results folder.

    Raises:
        UrlError: The environment names a database that cannot be used.
    """
    return JobQueue(Database(find_database_url(results)), tries=tries)


def made_queue(results: Path) -> JobQueue:
    """Open the queue of a results folder, made with the folder where there is none yet."""
    results.mkdir(parents=True, exist_ok=True)
    job_queue = open_queue(results)
    job_queue.make()
    return job_queue


def planned_queue(results: Path) -> JobQueue:
    """Open the queue of a results folder; without one it is a ``FleetError``."""
    job_queue = open_queue(results)
    if not job_queue.is_made():
        raise FleetError(
            f"{job_queue.database.name}: there is no queue yet: hybridwatch fleet plan"
        )
    return job_queue
