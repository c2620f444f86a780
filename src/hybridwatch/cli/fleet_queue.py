"""The queue that a verb means."""

from pathlib import Path

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.matrix import Confirm, Matrix, read_matrix


def open_queue(results: Path, tries: int = 3) -> JobQueue:
    """Open the queue of a results folder."""
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


def read_confirm(path: Path) -> tuple[Matrix, Confirm]:
    """Read a matrix that says how much a day has for what is measured again."""
    matrix = read_matrix(path)
    if matrix.confirm is None:
        raise FleetError(f"{matrix.path}: confirm: missing; expected a table with per_day")
    return matrix, matrix.confirm
