"""Finding one file of a store by what a person would type."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.naming import RECORD_SUFFIX

LATEST: Final = "latest"

_NAMED: Final = 3
"""How many candidates an error message lists."""


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Sort by the times that names begin with; half-written files are left out."""
    visible = (path for path in paths if not path.name.startswith("."))
    return sorted(visible, key=lambda path: (path.name, path.parent.name))


@dataclass(frozen=True, slots=True)
class Answering:
    """How files of a folder answer to what a person types.

    Attributes:
        noun: What one of them is called.
        fits: Whether a path answers to the beginning of a name.
        expected: What was looked for, for the error; the key is put in.
        remedy: What to do when there is none, or nothing to say.
        narrower: What to do when there are several.
    """

    noun: str
    fits: Callable[[Path, str], bool]
    expected: str
    remedy: str
    narrower: str


def one_of(results: Path, key: str, known: Sequence[Path], answering: Answering) -> Path:
    """Find the one file that answers to a path, the beginning of a name, or ``latest``.

    Raises:
        RecordError: None or more than one does.
    """
    if key.endswith(RECORD_SUFFIX) or "/" in key:
        if Path(key).is_file():
            return Path(key)
        raise RecordError(f"{key}: no such {answering.noun}")
    if not known:
        raise RecordError(f"{results}: {_nothing(results, answering)}")
    if key == LATEST:
        found = list(known[-1:])
    else:
        found = [path for path in known if key and answering.fits(path, key)]
    if len(found) == 1:
        return found[0]
    if not found:
        expected = answering.expected.format(repr(key))
        raise RecordError(
            f"{results}: expected {expected}, found none among {len(known)}{answering.remedy}"
        )
    names = ", ".join(path.stem for path in found[:_NAMED])
    several = f"{len(found)} {answering.noun}s: {names}"
    raise RecordError(f"{results}: {key!r} fits {several}; give {answering.narrower}")


def _nothing(results: Path, answering: Answering) -> str:
    """Say what is wrong where nothing can be found, whatever the request."""
    if not results.is_dir():
        return "no such folder; name one with --results"
    return f"holds no {answering.noun} yet{answering.remedy}"
