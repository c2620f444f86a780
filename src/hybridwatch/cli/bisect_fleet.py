"""What ``hybridwatch bisect --fleet`` needs of the home's ``fleet.toml`` and of the queue."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import click

from hybridwatch.cli.fleet_queue import made_queue
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.bisect.journal import SearchJournal
from hybridwatch.orchestration.bisect.question import STARTS
from hybridwatch.orchestration.fleet.matrix import MATRIX_FILE, read_matrix
from hybridwatch.orchestration.fleet.search import FleetSearch, search_batch_id
from hybridwatch.system.home import home


def require_askable(metric: str, repo: Path | None, base: str, *, installs: bool) -> None:
    """Refuse what hosts cannot be asked for.

    Raises:
        UsageError: It is no use together with ``--fleet``.
    """
    if metric == STARTS:
        raise click.UsageError(
            f"--metric {STARTS}: not with --fleet, where an engine that does not come up leaves no "
            "record."
        )
    if installs:
        raise click.UsageError("--install: not with --fleet, whose hosts install what is needed.")
    if repo is not None and not base:
        raise click.UsageError("--repo with --fleet: needs --base, a build that every host has.")


def open_fleet_search(
    testbed: str, results: Path, journal: SearchJournal, minutes: float, say: Callable[[str], None]
) -> FleetSearch:
    """Open the queue for a search.

    Args:
        testbed: Its name in the matrix.
        results: The results folder.
        journal: Of the search.
        minutes: After which no probe begins.
        say: Gets a line.

    Raises:
        FleetError: The matrix has no such testbed, or does not say how much a day has.
    """
    matrix = read_matrix(home() / MATRIX_FILE)
    kinds = {one.name: one for one in matrix.testbeds}
    if testbed not in kinds:
        names = ", ".join(kinds)
        raise FleetError(f"--fleet {testbed}: expected a testbed of {matrix.path}: {names}")
    if matrix.confirm is None:
        raise FleetError(f"{matrix.path}: confirm: missing; expected a table with per_day")
    job_queue = made_queue(results)
    return FleetSearch(
        job_queue=job_queue,
        results=results,
        testbed=kinds[testbed],
        per_day=matrix.confirm.per_day,
        batch_id=search_batch_id(journal.name()),
        until=job_queue.clock() + timedelta(minutes=minutes),
        read=journal.runs(),
        say=say,
    )
