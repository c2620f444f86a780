"""Where records lie: ``results/records/<testbed>/<UTC time>-<contender build>-<run id>.json``.

Names alone answer "which is the newest" and "where is run 1f0a9c3e"; no index is kept.
"""

from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.record.naming import RECORD_SUFFIX, safe_name
from hybridwatch.record.run import Run

RECORDS: Final = "records"
LATEST: Final = "latest"

_NAMED: Final = 3
"""How many candidates an error message lists."""


def folder_of(results: Path, run: Run) -> Path:
    """Name the folder of a run's files: one per testbed, since only those compare.

    Args:
        results: The results folder, such as ``results``.
        run: The run.
    """
    return results / RECORDS / safe_name(run.testbed.id)


def list_records(results: Path, folder: Path | None = None) -> list[Path]:
    """List the records of a store, of every testbed or of one.

    Args:
        results: The results folder; one that does not exist has no records.
        folder: As ``folder_of`` names it; all of them without.

    Returns:
        Paths, oldest run first; half-written files are never among them.
    """
    if folder is None:
        paths = (results / RECORDS).glob(f"*/*{RECORD_SUFFIX}")
    else:
        paths = folder.glob(f"*{RECORD_SUFFIX}")
    visible = (path for path in paths if not path.name.startswith("."))
    return sorted(visible, key=lambda path: (path.name, path.parent.name))


def find_record(results: Path, key: str) -> Path:
    """Find one record by what a person would type.

    Args:
        results: The results folder.
        key: A path to a record, a run id, the beginning of one, or ``latest``.

    Returns:
        The record's path.

    Raises:
        RecordError: No record or more than one answers to the key.
    """
    if key.endswith(RECORD_SUFFIX) or "/" in key:
        if Path(key).is_file():
            return Path(key)
        raise RecordError(f"{key}: no such record")
    records = list_records(results)
    if key == LATEST:
        found = records[-1:]
    else:
        found = [path for path in records if key and run_id_of(path).startswith(key)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise RecordError(
            f"{results}: expected a record whose run id begins with {key!r}, "
            f"found none among {len(records)}"
        )
    names = ", ".join(path.stem for path in found[:_NAMED])
    raise RecordError(f"{results}: {key!r} fits {len(found)} records: {names}; give more of the id")


def run_id_of(path: Path) -> str:
    """Read a run's id off the name of its record."""
    return path.stem.rpartition("-")[2]
