"""``hybridwatch answer``: what people ask for in comments on a pull request.

Where a fleet measures, that goes into its queue, and out of it.
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli.github_access import access, pull_request, run_address, takes_repo
from hybridwatch.cli.options import FILE, takes_results, verb, verb_group
from hybridwatch.cli.terminal import say
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.errors import FleetError, GithubError, HybridwatchError
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.integrations.github import grammar
from hybridwatch.integrations.github.our_comment import CommentRequest, RequestState, read_comment
from hybridwatch.orchestration.bisect.journal import read_answer
from hybridwatch.orchestration.fleet.job import JobState
from hybridwatch.orchestration.fleet.job_queue import made_queue, planned_queue, utc_now
from hybridwatch.orchestration.fleet.lookup import RequestedJobs, request_batch_id, requested_jobs
from hybridwatch.orchestration.fleet.matrix import MATRIX_FILE, Matrix, read_matrix
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.reports.escape import as_code, escape, fenced_lines
from hybridwatch.reports.pull_request import render, render_title
from hybridwatch.system.home import home
from hybridwatch.system.python_command import python_command

if TYPE_CHECKING:
    from hybridwatch.integrations.github.answering import AnswerOrder

_KEPT: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "VIRTUAL_ENV")
"""What a reading command gets of the environment, besides our own settings: no token."""
_OURS: Final = "HYBRIDWATCH_"
_READING_S: Final = 300
_LINES: Final = 80
_RESULT_BYTES: Final = 20_000
_LONGEST_NOTE: Final = 300


@verb_group(
    "answer",
    "comment event.json --repo OWNER/NAME --job job.txt",
    "result --repo OWNER/NAME --pr 12 --comment 3456 --state done",
)
def command() -> None:
    """Answer commands in comments on a pull request (docs/pull-request-commands.md)."""


@verb("comment", '"$GITHUB_EVENT_PATH" --repo OWNER/NAME --job "$GITHUB_OUTPUT"', of=command)
@click.argument("event", type=FILE)
@takes_repo
@click.option(
    "--build",
    "builds",
    multiple=True,
    default=(DEFAULT_BUILD, DEFAULT_BUILD),
    metavar="BUILD",
    help="What run compares when no builds are named; give it twice.",
)
@click.option(
    "--job",
    type=FILE,
    help="File that gets what is to be measured, as outputs of a job: arguments, head.",
)
@takes_results("Folder in which compare and explain look.")
def comment_command(
    *, event: Path, repo: str, builds: tuple[str, ...], job: Path | None, results: Path
) -> None:
    """Answer the comment of EVENT, a file with GitHub's event issue_comment.

    A comment that does not speak to the bot, and one by anybody without write access, is passed
    over: nothing is written anywhere. Else our one comment shows the command. compare, explain and
    help are answered at once. run goes into the queue of the home's fleet, if its fleet.toml has
    [ask]; else it is left in --job for another job, which has no token, and bisect always is.
    """
    client = access("answer", writes=True)
    from hybridwatch.integrations.github.answering import read_event, take

    claim = read_event(event, repo)
    order = claim and take(client, repo, claim, partial(grammar.build_vocabulary, results), builds)
    if not order:
        say("answer: nothing to do")
        return
    _answer(order, repo, results, job)


def _answer(order: "AnswerOrder", repo: str, results: Path, job: Path | None) -> None:
    from hybridwatch.integrations.github.answering import put_entry

    entry, result = order.asked, ""
    match order.command:
        case grammar.Help():
            entry, result = entry.model_copy(update={"state": RequestState.DONE}), grammar.HELP
        case grammar.Compare() | grammar.Explain() as command:
            status, result = _read(grammar.arguments(command), results)
            state = RequestState.FAILED if status > 1 else RequestState.DONE
            entry = entry.model_copy(update={"state": state})
        case grammar.Measure() | grammar.Bisect() as command:
            entry = _to_be_measured(order, command, repo, results, can_hand_on=job is not None)
        case None:
            pass
    put_entry(order.pull, entry, result)
    if entry.state is RequestState.RUNNING and job is not None and order.command is not None:
        words = json.dumps(grammar.arguments(order.command))
        with job.open("a", encoding="ascii") as file:  # none of it has a line end
            file.write(f"arguments={words}\nhead={order.pull.head}\n")
    say(f"answer: {entry.words}: {entry.state.value}")


def _to_be_measured(
    order: "AnswerOrder",
    command: grammar.Measure | grammar.Bisect,
    repo: str,
    results: Path,
    *,
    can_hand_on: bool,
) -> CommentRequest:
    """Put a command into the queue of the home's fleet, if it takes it, or leave it to a job."""
    file, entry = home() / MATRIX_FILE, order.asked
    matrix = read_matrix(file) if file.is_file() else None
    change: dict[str, object] = {"state": RequestState.RUNNING, "link": run_address()}
    if isinstance(command, grammar.Measure) and not command.known_bad and matrix and matrix.ask:
        try:
            place = repo, order.pull.number, entry.comment
            note = put_into_queue(matrix, command, results, place)
            change = {"state": RequestState.QUEUED, "note": note}
        except FleetError as error:
            why = str(error).removeprefix(f"{matrix.path}: ")  # where it lies is private
            change = {"state": RequestState.REFUSED, "note": why[:_LONGEST_NOTE]}
    elif not can_hand_on:
        change = {"state": RequestState.REFUSED, "note": "this is not measured here"}
    return entry.model_copy(update=change)


def _read(words: list[str], results: Path) -> tuple[int, str]:
    """Call a verb that reads, in a process that has no token; gives its status and its words."""
    line = python_command("-m", "hybridwatch", *words, "--results", str(results))
    try:
        done = subprocess.run(
            line, env=_environment(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_READING_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 2, f"{as_code(' '.join(words))} took longer than {_READING_S} s."
    said = fenced_lines(done.stdout.decode(errors="replace"), _LINES)
    return done.returncode, f"{as_code(' '.join(words))}:\n\n{said}"


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value for name, value in inherited.items() if name in _KEPT or name.startswith(_OURS)
    }
    return {**kept, "COLUMNS": "110", "NO_COLOR": "1", "PYTHONUTF8": "1"}


@verb("result", "--repo OWNER/NAME --pr 12 --comment 3456 --state done", of=command)
@takes_repo
@click.option("--pr", type=click.IntRange(1), required=True, help="Number of the pull request.")
@click.option(
    "--comment", "asked", type=click.IntRange(1), required=True, help="Number of the comment."
)
@click.option(
    "--state",
    type=click.Choice(["running", "done", "failed"]),
    required=True,
    help="How the command stands.",
)
@click.option("--note", default="", metavar="TEXT", help="A line that says more.")
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Results folder with what was measured; it is judged and shown.",
)
@takes_policy
def result_command(
    *, repo: str, pr: int, asked: int, state: str, note: str, records: Path | None, policy: Policy
) -> None:
    """Show in our comment what became of a command.

    What was measured is judged by the policy's rules; which scenarios it expects does not matter
    here, since a person chose them. The check on the commit stays that of `hybridwatch comment`.
    """
    pull = pull_request("answer", repo, pr, writes=True)
    from hybridwatch.integrations.github.answering import is_ours, put_entry

    entry = read_comment(pull.our_comment(is_ours)).queue.find(asked)
    if entry is None:
        raise GithubError(f"{repo}#{pr}: expected a command in comment {asked}, found none")
    result = "" if records is None else _judged(entry.words, records, policy)
    change = {"state": RequestState(state), "note": note[:_LONGEST_NOTE]}
    put_entry(pull, entry.model_copy(update=change), result)
    say(f"answer: {entry.words}: {state}")


def _judged(words: str, records: Path, policy: Policy) -> str:
    from hybridwatch.integrations.github.record_bundle import SEARCH_FILE
    from hybridwatch.integrations.github.suspicion import answer_text

    if (records / SEARCH_FILE).is_file():
        return f"{as_code(words)}:\n\n{answer_text(read_answer(records / SEARCH_FILE))}"
    findings = findings_for((), records, replace(policy, expected=()))
    text = render(findings, limit=_RESULT_BYTES).text
    shown = text.rstrip().rpartition("\n")[0].rstrip()
    return f"{as_code(words)}:\n\n{shown}"


def put_into_queue(
    matrix: Matrix, wanted: grammar.Measure, results: Path, place: tuple[str, int, int]
) -> str:
    """Plan what a comment, named by repository, pull request and id, asks for; gives a note."""
    batch_id, now = request_batch_id(*place), utc_now()
    asked = wanted.scenarios, wanted.builds, wanted.trials
    jobs = matrix.requested_jobs(home() / "scenarios", asked, batch_id, now)
    made_queue(results).plan(jobs, matrix.testbeds)
    return f"{plural(len(jobs), 'job')} in the queue"


@verb("refresh", "--repo OWNER/NAME --results results", of=command)
@takes_repo
@takes_results("Folder whose database has the queue, and which gets the records.")
@takes_policy
def refresh_command(*, repo: str, results: Path, policy: Policy) -> None:
    """Show in our comments how far the fleet is with the requests.

    Put it behind `hybridwatch fleet run` in what a timer starts.
    """
    job_queue = planned_queue(results)
    client = access("answer", writes=True)
    from hybridwatch.integrations.github.answering import is_ours, put_entry
    from hybridwatch.integrations.github.client import PullRequest

    for jobs in requested_jobs(job_queue, repo):
        pull = PullRequest(client, repo, jobs.pull_request)
        entry = read_comment(pull.our_comment(is_ours)).queue.find(jobs.comment)
        if entry is None or not entry.is_open:
            continue  # reported before
        changed = _as_it_stands(entry, jobs)
        if changed == entry:
            continue
        over = not changed.is_open
        put_entry(pull, changed, _jobs_result(entry, jobs, results, policy) if over else "")
        say(f"answer: {repo}#{jobs.pull_request}: {entry.words}: {changed.state.value}")


def _as_it_stands(entry: CommentRequest, jobs: RequestedJobs) -> CommentRequest:
    counts = Counter(state.value for state in jobs.states)
    note = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
    if jobs.is_open:
        begun = set(jobs.states) != {JobState.WAITING}
        state = RequestState.RUNNING if begun else RequestState.QUEUED
    else:
        state = RequestState.FAILED if jobs.lost else RequestState.DONE
    return entry.model_copy(update={"state": state, "note": note})


def _jobs_result(entry: CommentRequest, jobs: RequestedJobs, results: Path, policy: Policy) -> str:
    """Say of each record in a line what it shows; ``compare`` has the rest."""
    lines = []
    for record in jobs.records:
        try:
            said = render_title(findings_for((str(results / record),), results, policy))
        except HybridwatchError as error:
            said = str(error)
        lines.append(f"- {as_code(Path(record).stem)}: {escape(said, 400)}")
    return "\n".join([f"{as_code(entry.words)}:", "", *lines])
