"""Run the stages of a campaign, each within its limit, each with its answer on disk at its end."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import ConfigDict

from hybridwatch.errors import CampaignError
from hybridwatch.records.store import list_records
from hybridwatch.records.store.files import JournalEntry, append_entry, read_entries
from hybridwatch.system.files import claimed
from hybridwatch.system.guarded import GuardedProcess
from hybridwatch_lab.gpu.campaign.plan import CampaignPlan, Stage
from hybridwatch_lab.in_engine import variables

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


class StageEntry(JournalEntry):
    """One line of the journal; ``reason`` and ``tail`` say why a stage did not answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    end: End
    seconds: float = 0.0
    command: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    reason: str = ""
    tail: str = ""

    @property
    def key(self) -> str:
        """The stage: of each the last line counts."""
        return self.stage


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a campaign's folder."""
    with claimed(folder / ".lock") as is_ours:
        if not is_ours:
            raise CampaignError(f"{folder}: another campaign is going on here; let it end")
        yield


_BAD_NEWS: Final = 1
_ENDING_S: Final = 20.0
"""What the end of a stage that ran too long may take; kept free at the end of the campaign."""
_WORTHWHILE: Final = 0.5
"""A stage is begun when at least this share of its limit is left."""
_LONGEST_REASON: Final = 300
"""Characters of a log's last line where nothing better says why."""
_MESSAGE: Final = re.compile(r"^hybridwatch: (.*\S)", re.MULTILINE)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign.

    Attributes:
        folder: Gets the journal, and of each stage what it printed and its log.
        seconds: After so long nothing more is begun or left running.
    """

    plan: CampaignPlan
    folder: Path
    results: Path
    seconds: float


def run_campaign(
    campaign: Campaign, say: Say, *, resume: bool, clock: Callable[[], float] = time.monotonic
) -> list[StageEntry]:
    """Run every stage that has not answered yet; with ``resume`` first what was not tried yet."""
    deadline = clock() + campaign.seconds
    journal = campaign.folder / JOURNAL
    try:
        campaign.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CampaignError(f"{campaign.folder}: {error.strerror or error}") from error
    with alone(campaign.folder):
        before = {one.stage: one for one in read_entries(journal, StageEntry)} if resume else {}
        ends = {name: entry for name, entry in before.items() if entry.end.is_final}
        pending = [stage for stage in campaign.plan.stages if stage.id not in ends]
        # What was never tried comes before what has failed already and may fail again.
        pending.sort(key=lambda stage: _was_tried(before.get(stage.id)))
        for number, stage in enumerate(pending, 1):
            entry = _run_stage(campaign, stage, deadline - clock() - _ENDING_S, clock)
            append_entry(journal, entry)
            ends[stage.id] = entry
            minutes = max(deadline - clock(), 0) / 60
            say(f"[{number}/{len(pending)}] {describe(entry)}; {minutes:.0f} min left")
    return [ends[stage.id] for stage in campaign.plan.stages]


def _was_tried(entry: StageEntry | None) -> bool:
    return entry is not None and entry.end is not End.NOT_BEGUN


def describe(entry: StageEntry) -> str:
    """Say in a line what became of a stage."""
    if entry.end is End.NOT_BEGUN:
        return f"{entry.stage}: not begun, {entry.reason}"
    left = f", {len(entry.left)} file{'' if len(entry.left) == 1 else 's'}" if entry.left else ""
    reason = f": {entry.reason}" if entry.reason else ""
    return f"{entry.stage}: {entry.end} after {entry.seconds:.0f} s{left}{reason}"


def _run_stage(
    campaign: Campaign, stage: Stage, left_s: float, clock: Callable[[], float]
) -> StageEntry:
    if left_s < _WORTHWHILE * stage.limit_s:
        return StageEntry(
            stage=stage.id,
            end=End.NOT_BEGUN,
            command=stage.command,
            reason=f"it may take {stage.limit_s:.0f} s and {max(left_s, 0):.0f} s were left",
        )
    before = set(list_records(campaign.results))
    answer = campaign.folder / f"{stage.id}.out"
    log = campaign.folder / f"{stage.id}.log"
    for file in (answer, log):
        file.unlink(missing_ok=True)
    began, limit_s = clock(), min(stage.limit_s, left_s)
    status, process = _find_status(stage.command, answer, log, limit_s)
    records = sorted(set(list_records(campaign.results)) - before)
    left = [one.relative_to(campaign.results).as_posix() for one in records]
    if not stage.measures and status in {0, _BAD_NEWS, None} and answer.stat().st_size:
        left.append(answer.name)  # of a study that had to be ended, what it answered until then
    end = _end_of(status, answered=bool(left))
    return StageEntry(
        stage=stage.id,
        end=end,
        seconds=clock() - began,
        command=stage.command,
        left=tuple(left),
        reason=_reason(process, status, limit_s, end),
        tail="" if end is End.ANSWERED else process.log_tail(),
    )


def _find_status(
    command: Sequence[str], answer: Path, log: Path, limit_s: float
) -> tuple[int | None, GuardedProcess]:
    """Run it; gives its exit status, ``None`` when it had to be ended."""
    with answer.open("wb") as file:
        process = GuardedProcess(command, log, variables(), stdout=file.fileno())
    try:
        return process.wait(limit_s), process
    except TimeoutError:
        return None, process
    finally:
        process.stop()


def _end_of(status: int | None, *, answered: bool) -> End:
    if status is None:
        return End.TIMED_OUT
    if not answered or status not in {0, _BAD_NEWS}:
        return End.FAILED
    return End.ANSWERED if status == 0 else End.BAD_NEWS


def _reason(process: GuardedProcess, status: int | None, limit_s: float, end: End) -> str:
    match end:
        case End.ANSWERED:
            return ""
        case End.TIMED_OUT:
            return f"still running at its limit of {limit_s:.0f} s"
        case _:
            tail = process.log_tail()
            message = _MESSAGE.search(tail)
            last = tail.strip().rpartition("\n")[2][:_LONGEST_REASON]
            why = message[1] if message else process.first_error() or last
            return f"exit status {status}" + (f": {why}" if why else "")
