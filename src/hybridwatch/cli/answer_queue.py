"""What people ask for in comments, where a fleet measures: into its queue, and out of it."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.fleet_queue import made_queue, planned_queue
from hybridwatch.cli.github_access import REPOSITORY, access
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.errors import HybridwatchError
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.orchestration.fleet.job import JobState
from hybridwatch.orchestration.fleet.job_queue import utc_now
from hybridwatch.orchestration.fleet.lookup import RequestedJobs, request_batch_id, requested_jobs
from hybridwatch.orchestration.fleet.matrix import MATRIX_FILE, Matrix, read_matrix
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.reports.escape import as_code, escape
from hybridwatch.reports.pull_request import render_title
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home

if TYPE_CHECKING:
    from hybridwatch.integrations.github.grammar import Measure
    from hybridwatch.integrations.github.our_comment import CommentRequest


def matrix_that_asks() -> Matrix | None:
    """Give the matrix of the home, if people may ask its fleet for something.

    Raises:
        FleetError: There is one, and it is wrong.
    """
    file = home() / MATRIX_FILE
    matrix = read_matrix(file) if file.is_file() else None
    return matrix if matrix is not None and matrix.ask is not None else None


def put_into_queue(
    matrix: Matrix, wanted: "Measure", results: Path, place: tuple[str, int, int]
) -> str:
    """Plan what a comment asks for; gives what to say of it.

    Args:
        matrix: With ``[ask]``.
        wanted: What is to be measured.
        results: The folder whose database has the queue.
        place: Repository, pull request and comment.

    Raises:
        FleetError: The builds can run none of the scenarios.
    """
    batch_id, now = request_batch_id(*place), utc_now()
    asked = wanted.scenarios, wanted.builds, wanted.trials
    jobs = matrix.requested_jobs(home() / "scenarios", asked, batch_id, now)
    made_queue(results).plan(jobs, matrix.testbeds)
    return f"{plural(len(jobs), 'job')} in the queue"


@click.command(
    "refresh", epilog=examples("hybridwatch answer refresh --repo OWNER/NAME --results results")
)
@click.option("--repo", type=REPOSITORY, metavar="OWNER/NAME", required=True, help="On GitHub.")
@takes_results("Folder whose database has the queue, and which gets the records.")
@takes_policy
def refresh_command(*, repo: str, results: Path, policy: Policy) -> None:
    """Show in our comments how far the fleet is with what was asked for.

    Put it behind `hybridwatch fleet run` in what a timer starts.
    """
    job_queue = planned_queue(results)
    client = access("answer", writes=True)
    from hybridwatch.integrations.github.answering import is_ours, put_entry
    from hybridwatch.integrations.github.client import PullRequest
    from hybridwatch.integrations.github.our_comment import read_comment

    for jobs in requested_jobs(job_queue, repo):
        pull = PullRequest(client, repo, jobs.pull_request)
        entry = read_comment(pull.our_comment(is_ours)).queue.find(jobs.comment)
        if entry is None or not entry.is_open:
            continue  # it was told before
        changed = _as_it_stands(entry, jobs)
        if changed == entry:
            continue
        over = not changed.is_open
        put_entry(pull, changed, _result(entry, jobs, results, policy) if over else "")
        say(f"answer: {repo}#{jobs.pull_request}: {entry.words}: {changed.state.value}")


def _as_it_stands(entry: "CommentRequest", jobs: RequestedJobs) -> "CommentRequest":
    from hybridwatch.integrations.github.our_comment import RequestState

    counts = Counter(state.value for state in jobs.states)
    note = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
    if jobs.is_open:
        begun = set(jobs.states) != {JobState.WAITING}
        state = RequestState.RUNNING if begun else RequestState.QUEUED
    else:
        state = RequestState.FAILED if jobs.lost else RequestState.DONE
    return entry.model_copy(update={"state": state, "note": note})


def _result(entry: "CommentRequest", jobs: RequestedJobs, results: Path, policy: Policy) -> str:
    """Say of each record in a line what it shows; ``compare`` has the rest."""
    lines = []
    for record in jobs.records:
        try:
            said = render_title(findings_for((str(results / record),), results, policy))
        except HybridwatchError as error:
            said = str(error)
        lines.append(f"- {as_code(Path(record).stem)}: {escape(said, 400)}")
    return "\n".join([f"{as_code(entry.words)}:", "", *lines])
