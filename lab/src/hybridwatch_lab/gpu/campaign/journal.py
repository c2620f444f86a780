"""What became of each stage: a line each, on disk as soon as the stage has ended."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from hybridwatch.errors import CampaignError
from hybridwatch.system.files import claimed

JOURNAL: Final = "journal.jsonl"


class End(StrEnum):
    """How a stage ended."""

    ANSWERED = "answered"
    BAD_NEWS = "bad news"
    """It left its answer, and the answer is that something is wrong (exit status 1)."""
    FAILED = "failed"
    TIMED_OUT = "timed out"
    NOT_BEGUN = "not begun"

    @property
    def is_final(self) -> bool:
        """Whether ``--resume`` need not run it again."""
        return self in {End.ANSWERED, End.BAD_NEWS}


class StageEntry(BaseModel):
    """One line of the journal.

    Attributes:
        stage: Its id.
        end: How it ended.
        seconds: How long it took.
        command: What was run.
        left: Files that it left, records relative to the results folder.
        reason: In one line why it did not answer; empty otherwise.
        tail: The end of its log when it did not answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    end: End
    seconds: float = 0.0
    command: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    reason: str = ""
    tail: str = ""


class CampaignJournal:
    """The journal of a campaign's folder.

    A line that the end of the machine has cut is no entry: its stage is run again.

    Args:
        folder: The campaign's folder; it is made where it is not there.

    Raises:
        CampaignError: The folder cannot be made or read.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        except OSError as error:
            raise CampaignError(f"{folder}: {error.strerror or error}") from error
        self._cut = bool(lines) and not lines[-1].endswith(b"\n")
        self.entries = [one for line in lines if (one := _parsed(line)) is not None]

    def last(self) -> dict[str, StageEntry]:
        """What became of each stage the last time."""
        return {entry.stage: entry for entry in self.entries}

    def add(self, entry: StageEntry) -> None:
        """Write a line, and return when it would survive a power cut."""
        with self.path.open("ab") as file:
            # What a cut line was about is lost; it must not take this one with it.
            file.write(b"\n" if self._cut else b"")
            file.write(entry.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._cut = False
        self.entries.append(entry)


def _parsed(line: bytes) -> StageEntry | None:
    try:
        return StageEntry.model_validate_json(line)
    except ValidationError:
        return None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a campaign's folder.

    Raises:
        CampaignError: Another campaign is going on in it.
    """
    with claimed(folder / ".lock") as is_ours:
        if not is_ours:
            raise CampaignError(f"{folder}: another campaign is going on here; let it end")
        yield
