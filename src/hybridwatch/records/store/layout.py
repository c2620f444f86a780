"""Where records lie: ``results/records/<testbed>/<UTC time>-<contender build>-<run id>.json``.

Names alone answer "which is the newest" and "where is run 1f0a9c3e"; no index is kept.
"""

from pathlib import Path
from typing import Final

from hybridwatch.records.naming import RECORD_SUFFIX, safe_name
from hybridwatch.records.run import Run
from hybridwatch.records.store.lookup import Answering, oldest_first, one_of
from hybridwatch.records.store.mirror import refreshed

RECORDS: Final = "records"

_ANSWERING: Final = Answering(
    noun="record",
    fits=lambda path, key: run_id_of(path).startswith(key),
    expected="a record whose run id begins with {}",
    remedy="; measure one: hybridwatch run SCENARIO, or see: hybridwatch records",
    narrower="more of the id",
)


def folder_of(results: Path, run: Run) -> Path:
    """Name the folder of a run's files: one per testbed, since only those compare."""
    return results / RECORDS / safe_name(run.testbed.id)


def results_above(record: Path) -> Path:
    """Name the results folder that a record lies in, if it lies where records lie."""
    return record.parent.parent.parent


def list_records(results: Path, folder: Path | None = None) -> list[Path]:
    """List the records of a store, of every testbed or of one.

    Args:
        results: The results folder; one that does not exist has no records.
        folder: As ``folder_of`` names it; all of them without.

    Returns:
        Paths, oldest run first; half-written files are never among them.

    Raises:
        RecordError: The folder mirrors an object store that cannot be listed.
    """
    refreshed(results)
    if folder is None:
        paths = (results / RECORDS).glob(f"*/*{RECORD_SUFFIX}")
    else:
        paths = folder.glob(f"*{RECORD_SUFFIX}")
    return oldest_first(paths)


def find_record(results: Path, key: str) -> Path:
    """Find one record by what a person would type.

    Args:
        results: The results folder.
        key: A path to a record, a run id, the beginning of one, or ``latest``.

    Raises:
        RecordError: No record or more than one answers to the key.
    """
    return one_of(results, key, list_records(results), _ANSWERING)


def run_id_of(path: Path) -> str:
    """Read a run's id off the name of its record."""
    return path.stem.rpartition("-")[2]
