"""``hybridwatch answer``: what people ask for in comments on a pull request."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hybridwatch.analysis.policy import Policy
from hybridwatch.cli.answer_queue import matrix_that_asks, put_into_queue, refresh_command
from hybridwatch.cli.github_access import REPOSITORY, access, pull_request
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.cli.step_summary import run_address
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.errors import FleetError, GithubError
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.orchestration.bisect.journal import read_answer
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.reports.escape import as_code, fenced_lines
from hybridwatch.reports.pull_request import render
from hybridwatch.system.console_text import say

if TYPE_CHECKING:
    from hybridwatch.integrations.github.answering import AnswerOrder
    from hybridwatch.integrations.github.grammar import Bisect, Measure
    from hybridwatch.integrations.github.our_comment import CommentRequest

_KEPT: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "VIRTUAL_ENV")
"""What a reading command gets of the environment, beside our own settings: no token."""
_OURS: Final = "HYBRIDWATCH_"
_READING_S: Final = 300
_LINES: Final = 80
_RESULT_BYTES: Final = 20_000
_LONGEST_NOTE: Final = 300


@click.group(
    "answer",
    epilog=examples(
        "hybridwatch answer comment event.json --repo OWNER/NAME --job job.txt",
        "hybridwatch answer result --repo OWNER/NAME --pr 12 --comment 3456 --state done",
    ),
)
def command() -> None:
    """Answer commands in comments on a pull request (docs/pull-request-commands.md)."""


@command.command(
    "comment",
    epilog=examples(
        'hybridwatch answer comment "$GITHUB_EVENT_PATH" --repo OWNER/NAME --job "$GITHUB_OUTPUT"'
    ),
)
@click.argument("event", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--repo", type=REPOSITORY, metavar="OWNER/NAME", required=True, help="On GitHub.")
@click.option(
    "--build",
    "builds",
    multiple=True,
    default=(DEFAULT_BUILD, DEFAULT_BUILD),
    metavar="BUILD",
    help="What run compares when nobody names builds; give it twice.",
)
@click.option(
    "--job",
    type=click.Path(path_type=Path, dir_okay=False),
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
    from hybridwatch.integrations.github.answering import read_claim, take
    from hybridwatch.integrations.github.grammar import build_vocabulary

    claim = read_claim(event, repo)
    order = claim and take(client, repo, claim, partial(build_vocabulary, results), builds)
    if not order:
        say("answer: nothing to do")
        return
    _answer(order, repo, results, job)


def _answer(order: "AnswerOrder", repo: str, results: Path, job: Path | None) -> None:
    from hybridwatch.integrations.github.answering import put_entry
    from hybridwatch.integrations.github.grammar import (
        HELP,
        Bisect,
        Compare,
        Explain,
        Help,
        Measure,
        arguments,
    )
    from hybridwatch.integrations.github.our_comment import RequestState

    entry, result = order.asked, ""
    match order.command:
        case Help():
            entry, result = entry.model_copy(update={"state": RequestState.DONE}), HELP
        case Compare() | Explain() as command:
            status, result = _read(arguments(command), results)
            entry = entry.model_copy(
                update={"state": RequestState.FAILED if status > 1 else RequestState.DONE}
            )
        case Measure() | Bisect() as command:
            entry = _to_be_measured(order, command, repo, results, can_hand_on=job is not None)
        case None:
            pass
    put_entry(order.pull, entry, result)
    if entry.state is RequestState.RUNNING and job is not None and order.command is not None:
        _hand_on(job, arguments(order.command), order.pull.head)
    say(f"answer: {entry.words}: {entry.state.value}")


def _to_be_measured(
    order: "AnswerOrder",
    command: "Measure | Bisect",
    repo: str,
    results: Path,
    *,
    can_hand_on: bool,
) -> "CommentRequest":
    """Put a command into the queue of the home's fleet, if it takes it, or leave it to a job."""
    from hybridwatch.integrations.github.grammar import Measure
    from hybridwatch.integrations.github.our_comment import RequestState

    matrix, entry = matrix_that_asks(), order.asked
    change: dict[str, object] = {"state": RequestState.RUNNING, "link": run_address()}
    if matrix is not None and isinstance(command, Measure) and not command.known_bad:
        try:
            place = repo, order.pull.number, entry.comment
            note = put_into_queue(matrix, command, results, place)
            change = {"state": RequestState.QUEUED, "note": note}
        except FleetError as error:
            why = str(error).removeprefix(f"{matrix.path}: ")  # nobody's business where it lies
            change = {"state": RequestState.REFUSED, "note": why[:_LONGEST_NOTE]}
    elif not can_hand_on:
        change = {"state": RequestState.REFUSED, "note": "this is not measured here"}
    return entry.model_copy(update=change)


def _hand_on(job: Path, words: list[str], head: str) -> None:
    """Write what is to be measured; none of it has a line end."""
    with job.open("a", encoding="ascii") as file:
        file.write(f"arguments={json.dumps(words)}\nhead={head}\n")


def _read(words: list[str], results: Path) -> tuple[int, str]:
    """Call a verb that reads, in a process that has no token; gives its status and its words."""
    line = [sys.executable, "-m", "hybridwatch", *words, "--results", str(results)]
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


@command.command(
    "result",
    epilog=examples(
        "hybridwatch answer result --repo OWNER/NAME --pr 12 --comment 3456 --state done"
    ),
)
@click.option("--repo", type=REPOSITORY, metavar="OWNER/NAME", required=True, help="On GitHub.")
@click.option("--pr", type=click.IntRange(1), required=True, help="Number of the pull request.")
@click.option(
    "--comment", "asked", type=click.IntRange(1), required=True, help="The comment that asked."
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
    *,
    repo: str,
    pr: int,
    asked: int,
    state: str,
    note: str,
    records: Path | None,
    policy: Policy,
) -> None:
    """Show in our comment what became of a command.

    What was measured is judged by the policy's rules; which scenarios it expects does not matter
    here, since a person chose them. The check on the commit stays that of `hybridwatch comment`.
    """
    pull = pull_request("answer", repo, pr, writes=True)
    from hybridwatch.integrations.github.answering import is_ours, put_entry
    from hybridwatch.integrations.github.our_comment import RequestState, read_comment

    entry = read_comment(pull.our_comment(is_ours)).queue.find(asked)
    if entry is None:
        raise GithubError(f"{repo}#{pr}: expected a command asked in comment {asked}, found none")
    result = "" if records is None else _judged(entry.words, records, policy)
    put_entry(
        pull,
        entry.model_copy(update={"state": RequestState(state), "note": note[:_LONGEST_NOTE]}),
        result,
    )
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


command.add_command(refresh_command)
