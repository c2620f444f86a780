"""How the jobs stand that somebody asked for in a comment on a pull request."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select

from hybridwatch.database.schema import JOB
from hybridwatch.orchestration.fleet.job import OPEN, State
from hybridwatch.orchestration.fleet.ledger import Ledger

_NIGHT: Final = re.compile(r"(\S+)#(\d+) comment (\d+)")


@dataclass(frozen=True, slots=True)
class RequestedJobs:
    """The jobs of one comment.

    Attributes:
        pull_request: Its number.
        comment: The comment that asked.
        states: Of each job.
        records: Of those that are done, below the results folder.
    """

    pull_request: int
    comment: int
    states: tuple[State, ...]
    records: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether one of them waits or runs."""
        return any(state in OPEN for state in self.states)

    @property
    def lost(self) -> Sequence[State]:
        """How those ended that have no record and will get none."""
        return [state for state in self.states if state not in {*OPEN, State.DONE}]


def night_of(repository: str, pull_request: int, comment: int) -> str:
    """Name the night of what a comment asks for."""
    return f"{repository}#{pull_request} comment {comment}"


def requested_jobs(ledger: Ledger, repository: str) -> Iterator[RequestedJobs]:
    """Give what was asked on the pull requests of a repository, the oldest comment first."""
    begin = f"{repository}#"
    wanted = select(JOB.c.night, JOB.c.state, JOB.c.record).where(
        JOB.c.night.startswith(begin, autoescape=True)
    )
    with ledger.database.reading() as connection:
        rows = connection.execute(wanted.order_by(JOB.c.planned_at, JOB.c.key)).fetchall()
    for night in dict.fromkeys(row.night for row in rows):
        if found := _NIGHT.fullmatch(night):
            mine = [row for row in rows if row.night == night]
            yield RequestedJobs(
                int(found[2]),
                int(found[3]),
                tuple(State(row.state) for row in mine),
                tuple(row.record for row in mine if row.record),
            )
