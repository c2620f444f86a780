"""The files of a search: what it has measured, and the answer it printed."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.orchestration.bisect.question import ChangeDirection, ProbeOutcome, ProbeState
from hybridwatch.records.json_checks import first_fault
from hybridwatch.records.store.reader import naming, read_file
from hybridwatch.system.files import claimed, make_folder, named_errors, put

FOLDER: Final = "bisect"
_DIGITS: Final = 10


class _JournalFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: dict[str, str]
    name: str = ""
    outcomes: dict[str, list[ProbeOutcome]] = Field(default_factory=dict)


@dataclass(slots=True)
class SearchJournal:
    """The state of one search; ``calls`` are requests of this run, ``fresh`` its measurements."""

    path: Path
    question: Mapping[str, str]
    calls: dict[str, int] = field(default_factory=dict)
    fresh: int = 0
    _file: _JournalFile = field(init=False)

    def __post_init__(self) -> None:
        self._file = _read(self.path) or _JournalFile(question=dict(self.question))

    def outcome(
        self, key: str, measure: Callable[[], ProbeOutcome], *, has_noise: bool = False
    ) -> ProbeOutcome:
        """Give what is kept of ``key``, or measure; with ``has_noise`` once for each call."""
        number = self.calls.get(key, 0) if has_noise else 0
        kept = self._file.outcomes.setdefault(key, [])
        if number == len(kept):
            kept.append(measure())
            self.fresh += 1
            self._write()
        self.calls[key] = number + 1
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
        """Ten digits for what is made for this search alone; the same when it is begun again."""
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
        with named_errors(self.path):
            make_folder(self.path.parent)
            put(self.path, content.encode())


@contextmanager
def sole_journal(
    results: Path, scenario: str, question: Mapping[str, str], *, discard: bool
) -> Iterator[SearchJournal]:
    """Open a journal, and keep other calls from it until the block ends."""
    path = _build_path(results, scenario, question)
    with ExitStack() as stack:
        with named_errors(path):
            make_folder(path.parent)
            is_ours = stack.enter_context(claimed(path.with_suffix(".lock")))
        if not is_ours:
            raise RecordError(f"{path}: another call is at this search; wait until it ends")
        yield open_journal(results, scenario, question, discard=discard)


def open_journal(
    results: Path, scenario: str, question: Mapping[str, str], *, discard: bool
) -> SearchJournal:
    """Open the journal of a question; ``discard`` deletes earlier outcomes."""
    path = _build_path(results, scenario, question)
    if discard:
        path.unlink(missing_ok=True)
    return SearchJournal(path, question)


def _build_path(results: Path, scenario: str, question: Mapping[str, str]) -> Path:
    canonical = json.dumps(dict(question), sort_keys=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]
    return results / FOLDER / f"{scenario.replace('/', '-')}-{digest}.json"


def _read(path: Path) -> _JournalFile | None:
    """Read the outcomes, without those that could not be had: these are measured again."""
    if not path.exists():
        return None
    with naming(path):
        try:
            found = _JournalFile.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise RecordError(f"{first_fault(error)}; --anew discards it") from None
    for key, outcomes in found.outcomes.items():
        found.outcomes[key] = [one for one in outcomes if one.state is not ProbeState.NOT_HAD]
    return found


_MOST_BYTES: Final = 2**20
_Text = Annotated[str, Field(max_length=2000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Suspect(_Part):
    """A release or commit that may be the change; ``name`` is a build, or a commit's 40 digits."""

    name: _Text
    title: _Text = ""

    @property
    def is_commit(self) -> bool:
        """Whether it is a commit."""
        return len(self.name) == 40 and set(self.name) <= set("0123456789abcdef")


class Culprit(_Part):
    """What changed, and where; the fields are those of docs/json.md."""

    metric: _Text
    find: ChangeDirection
    effect: float | None
    interval: tuple[float, float] | None
    certainty: float | None
    good: _Text
    bad: _Text
    culprit: Suspect | None
    suspects: Annotated[tuple[Suspect, ...], Field(max_length=10_000)]


class ConfirmationPart(_Part):
    """The pair measured again."""

    holds: bool
    seen: _Text


class SearchAnswer(_Part):
    """What came of a search; ``why_not`` says why an alert could not be searched."""

    schema_version: Literal[1]
    scenario: _Text
    confirmed: bool
    answer: Culprit | None
    confirmation: ConfirmationPart | None
    repeat: _Text | None
    why_not: _Text = ""

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Whatever may be the change, as far as its pair differed again when measured again."""
        if self.answer is None or self.confirmation is None or not self.confirmation.holds:
            return ()
        return (self.answer.culprit,) if self.answer.culprit else self.answer.suspects


def read_answer(path: Path) -> SearchAnswer:
    """Read a file."""
    with naming(path):
        try:
            return SearchAnswer.model_validate_json(read_file(path, _MOST_BYTES))
        except ValidationError as error:
            raise RecordError(first_fault(error, "expected what bisect --json prints: ")) from None
