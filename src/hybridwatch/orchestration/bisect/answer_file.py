"""What a search found, read back from what ``hybridwatch bisect --json`` printed."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.orchestration.bisect.question import ChangeDirection
from hybridwatch.records.store import read_file

_MOST_BYTES: Final = 2**20
_Text = Annotated[str, Field(max_length=2000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Suspect(_Part):
    """A release or commit that may be the change.

    Attributes:
        name: A build, or the whole name of a commit.
        title: Of a commit.
    """

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
    """What came of a search."""

    schema_version: Literal[1]
    scenario: _Text
    confirmed: bool
    answer: Culprit | None
    confirmation: ConfirmationPart | None
    repeat: _Text | None

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Whatever may be the change, as far as its pair differed again when measured again."""
        if self.answer is None or self.confirmation is None or not self.confirmation.holds:
            return ()
        return (self.answer.culprit,) if self.answer.culprit else self.answer.suspects


def read_answer(path: Path) -> SearchAnswer:
    """Read a file."""
    try:
        return SearchAnswer.model_validate_json(read_file(path, _MOST_BYTES))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise RecordError(
            f"{path}: {where}: expected what bisect --json prints: {first['msg']}"
        ) from None
