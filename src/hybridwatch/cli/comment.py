"""``hybridwatch comment``: what was found out, as one comment and a check on a pull request."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import Policy
from hybridwatch.cli.github_access import REPOSITORY, TOKEN, fitting, pull_request
from hybridwatch.cli.options import examples
from hybridwatch.cli.sides import ANY_TESTBEDS, MANY_HELP, RECORDS_HELP, may_take_records
from hybridwatch.cli.step_summary import SUMMARY, add_to_summary, run_address
from hybridwatch.errors import GithubError
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, news_in, render, render_title

if TYPE_CHECKING:
    from hybridwatch.integrations.github.client import PullRequest

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_LONGEST_TITLE: Final = 250


@click.command(
    "comment",
    help="Write one comment on a pull request and edit it when there is news. Without news there "
    "is no comment. The head commit gets a check. The token comes from the environment "
    f"({TOKEN}).\n\n{RECORDS_HELP}\n\n{MANY_HELP}",
    epilog=examples(
        "hybridwatch comment --dry-run latest",
        "hybridwatch comment --repo OWNER/NAME --pr 12 --results results",
    ),
)
@may_take_records
@click.option(
    "--repo",
    type=REPOSITORY,
    metavar="OWNER/NAME",
    help="Repository on GitHub.",
)
@click.option("--pr", type=click.IntRange(1), help="Number of the pull request.")
@click.option(
    "--head",
    type=fitting(_COMMIT, "a whole commit id"),
    metavar="COMMIT",
    help="The commit that was measured; it must belong to the pull request.  [default: its head]",
)
@takes_policy
@click.option("--dry-run", is_flag=True, help="Print the Markdown and post nothing.")
def command(
    *,
    records: tuple[str, ...],
    results: Path,
    policy: Policy,
    repo: str | None,
    pr: int | None,
    head: str | None,
    dry_run: bool,
) -> None:
    """Judge, then post or print."""
    if not dry_run and (repo is None or pr is None):
        raise click.UsageError(
            "Give --repo and --pr to say where to post, or --dry-run to print only."
        )
    findings = findings_for(records, results, policy, ANY_TESTBEDS)
    if dry_run or repo is None or pr is None:
        _print(findings)
        return
    pull = pull_request("comment", repo, pr, writes=True)
    if head is not None and head != pull.head:
        if not pull.has_commit(head):
            raise GithubError(f"{repo}#{pr}: commit {head} does not belong to this pull request")
        click.echo(f"comment: {head[:12]} is no longer the head of {repo}#{pr}; nothing to do")
        return
    click.echo(f"comment: {_comment(pull, findings)}")
    click.echo(f"check:   {_check(pull, findings)}")


def _print(findings: ChangeReview) -> None:
    click.echo(render(findings).text, nl=False)
    if not findings.has_news:
        click.echo("no news: a pull request without a comment would get none", err=True)


def _comment(pull: "PullRequest", findings: ChangeReview) -> str:
    from hybridwatch.integrations.github.our_comment import with_verdict

    def text_after(body: str | None) -> str | None:
        before = None if body is None else news_in(body)
        if before is None and not findings.has_news:
            return None
        page = render(findings, before)
        if page.left_out:
            _summarize(render(findings, before, SUMMARY_LIMIT).text)
        return with_verdict(body, page.text)

    return pull.comment(lambda body: news_in(body) is not None, text_after)


def _summarize(text: str) -> None:
    """Put what a comment cannot hold into the job's summary."""
    if not add_to_summary(text):
        click.echo(f"comment: {SUMMARY} is not set: the text that did not fit is lost", err=True)


def _check(pull: "PullRequest", findings: ChangeReview) -> str:
    from hybridwatch.integrations.github.client import Check

    check = Check(
        conclusion=findings.conclusion.value,
        title=one_line(render_title(findings))[:_LONGEST_TITLE],
        summary=render(findings).text,
        details_url=run_address() or None,
    )
    return f"{check.conclusion}, {pull.check(pull.head, check)}"
