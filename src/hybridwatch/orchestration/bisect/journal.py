"""What a search has measured so far, in a file that any later call goes on from.

The search itself is a function of what was measured, so nothing else is kept.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.orchestration.bisect.question import ProbeOutcome, ProbeState
from hybridwatch.system.atomic_file import make_folder, put
from hybridwatch.system.file_lock import claimed

FOLDER: Final = "bisect"
_DIGITS: Final = 10


class _JournalFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: dict[str, str]
    name: str = ""
    outcomes: dict[str, list[ProbeOutcome]] = Field(default_factory=dict)


@dataclass(slots=True)
class SearchJournal:
    """The state of one search.

    Attributes:
        question: What is searched for; another question has another file.
        asked: How often each candidate was asked for in this call.
        fresh: How many measurements this call made.
    """

    path: Path
    question: Mapping[str, str]
    asked: dict[str, int] = field(default_factory=dict)
    fresh: int = 0
    _file: _JournalFile = field(init=False)

    def __post_init__(self) -> None:
        self._file = _read(self.path) or _JournalFile(question=dict(self.question))

    def outcome(
        self, key: str, measure: Callable[[], ProbeOutcome], *, has_noise: bool = False
    ) -> ProbeOutcome:
        """Give a measurement: the one that is kept, or a new one.

        ``key`` is what is measured, and how. With ``has_noise`` each time it is asked for in the
        same call is another measurement.
        """
        number = self.asked.get(key, 0) if has_noise else 0
        kept = self._file.outcomes.setdefault(key, [])
        if number == len(kept):
            kept.append(measure())
            self.fresh += 1
            self._write()
        self.asked[key] = number + 1
        return kept[number]

    def has(self, key: str) -> bool:
        """Whether something was measured."""
        return bool(self._file.outcomes.get(key))

    def name(self) -> str:
        """Give the search a name that is as old as its file."""
        if not self._file.name:
            self._file.name = secrets.token_hex(_DIGITS // 2)
            self._write()
        return self._file.name

    @property
    def digits(self) -> str:
        """Ten digits of its place, for what is made for this search alone.

        A search that is begun again has the same, and so lays its builds over those that it kept.
        """
        return hashlib.sha256(bytes(self.path.resolve())).hexdigest()[:_DIGITS]

    def runs(self) -> set[str]:
        """Give the ids of the runs that its measurements were read from."""
        every = (one for outcomes in self._file.outcomes.values() for one in outcomes)
        return {one.run for one in every if one.run}

    @property
    def kept(self) -> int:
        """How many measurements there are."""
        return sum(map(len, self._file.outcomes.values()))

    def _write(self) -> None:
        content = self._file.model_dump_json(indent=1) + "\n"
        try:
            make_folder(self.path.parent)
            put(self.path, content.encode())
        except OSError as error:
            raise _unwritable(self.path, error) from error


@contextmanager
def sole_journal(
    results: Path, scenario: str, question: Mapping[str, str], *, anew: bool
) -> Iterator[SearchJournal]:
    """Open a journal, and keep other calls from it until the block ends."""
    path = _build_path(results, scenario, question)
    with ExitStack() as stack:
        try:
            make_folder(path.parent)
            is_ours = stack.enter_context(claimed(path.with_suffix(".lock")))
        except OSError as error:
            raise _unwritable(path, error) from error
        if not is_ours:
            raise RecordError(f"{path}: another call is at this search; wait until it ends")
        yield open_journal(results, scenario, question, anew=anew)


def open_journal(
    results: Path, scenario: str, question: Mapping[str, str], *, anew: bool
) -> SearchJournal:
    """Open the journal of a question.

    ``question`` is all that makes two searches the same. With ``anew`` what was measured before is
    forgotten.
    """
    path = _build_path(results, scenario, question)
    if anew:
        path.unlink(missing_ok=True)
    return SearchJournal(path, question)


def _build_path(results: Path, scenario: str, question: Mapping[str, str]) -> Path:
    canonical = json.dumps(dict(question), sort_keys=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]
    return results / FOLDER / f"{scenario.replace('/', '-')}-{digest}.json"


def _unwritable(path: Path, error: OSError) -> RecordError:
    return RecordError(f"{path}: cannot be written: {error.strerror or error}")


def _read(path: Path) -> _JournalFile | None:
    """Read what was measured; what could not be had may be there by now, and is asked for again."""
    try:
        found = _JournalFile.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise RecordError(f"{path}: {where}: {first['msg']}; --anew discards it") from None
    for key, outcomes in found.outcomes.items():
        found.outcomes[key] = [one for one in outcomes if one.state is not ProbeState.NOT_HAD]
    return found
