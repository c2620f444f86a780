"""What an event of GitHub's says about a comment: a claim, until the comment is read again."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import GithubError, RecordError
from hybridwatch.records.store import read_file

_MOST_BYTES: Final = 4 * 2**20

_Number = Annotated[int, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _User(_Part):
    id: _Number


class _Comment(_Part):
    id: _Number
    body: str
    user: _User


class _Issue(_Part):
    number: _Number
    pull_request: dict[str, object] | None = None


class _Repository(_Part):
    full_name: str


class _Event(_Part):
    action: str
    comment: _Comment
    issue: _Issue
    repository: _Repository


class Claim(_Part):
    """A comment, as the event has it.

    Attributes:
        comment: Its number.
        pull_request: The number of the pull request.
        author: The number of the account that wrote it.
        body: What it said when it was made.
    """

    comment: int
    pull_request: int
    author: int
    body: str


def read_claim(event: Path, repository: str) -> Claim | None:
    """Read the file of an event ``issue_comment``.

    Only ``created`` counts: a comment that is edited may have been edited by somebody else than
    its author, and GitHub does not say in the event by whom.

    Args:
        event: JSON, as ``GITHUB_EVENT_PATH`` names it.
        repository: ``owner/name`` of ours.

    Returns:
        ``None`` for an event that asks for nothing: an edit, a comment on an issue.

    Raises:
        GithubError: It is no such event, or one of another repository.
    """
    try:
        found = _Event.model_validate_json(read_file(event, _MOST_BYTES))
    except (OSError, RecordError) as error:
        raise GithubError(f"{event}: cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise GithubError(
            f"{event}: {where}: expected an event issue_comment: {first['msg']}"
        ) from None
    if found.repository.full_name.lower() != repository.lower():
        raise GithubError(
            f"{event}: repository.full_name: expected {repository}, "
            f"found {found.repository.full_name[:100]!r}"
        )
    if found.action != "created" or found.issue.pull_request is None:
        return None
    return Claim(
        comment=found.comment.id,
        pull_request=found.issue.number,
        author=found.comment.user.id,
        body=found.comment.body,
    )
