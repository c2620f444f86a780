"""``hybridwatch comment``: what was found out, as one comment and a check on a pull request."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.policy import Policy
from hybridwatch.cli.compare import ANY_TESTBEDS, MANY_HELP, RECORDS_HELP, takes_records
from hybridwatch.cli.github_access import (
    REPOSITORY,
    SUMMARY,
    TOKEN,
    add_to_summary,
    fitting,
    pull_request,
    run_address,
)
from hybridwatch.cli.options import verb
from hybridwatch.cli.terminal import say
from hybridwatch.errors import GithubError
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.integrations.github.our_comment import with_verdict
from hybridwatch.orchestration.bisect.alert_answers import read_answers
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.pages.address import builds_address
from hybridwatch.reports.escape import Page, one_line
from hybridwatch.reports.markdown import code
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, news_in, render, render_title

if TYPE_CHECKING:
    from hybridwatch.integrations.github.client import PullRequest

_LONGEST_TITLE: Final = 250


@verb(
    "comment",
    "--dry-run latest",
    "--repo OWNER/NAME --pr 12 --results results",
    text="Write one comment on a pull request and edit it when there is news. Without news there "
    "is no comment. The head commit gets a check. The token comes from the environment "
    f"({TOKEN}).\n\n{RECORDS_HELP}\n\n{MANY_HELP}",
)
@takes_records(required=False)
@click.option("--repo", type=REPOSITORY, metavar="OWNER/NAME", help="Repository on GitHub.")
@click.option("--pr", type=click.IntRange(1), help="Number of the pull request.")
@click.option(
    "--head",
    type=fitting(r"[0-9a-f]{40}", "a whole commit id"),
    metavar="COMMIT",
    help="The commit that was measured; it must belong to the pull request.  [default: its head]",
)
@takes_policy
@click.option(
    "--dashboard",
    type=fitting(r"https?://[^\s<>]+", "an address with https://"),
    metavar="URL",
    help="Address of a dashboard that has these records: link to its page of both builds.",
)
@click.option("--dry-run", is_flag=True, help="Print the Markdown and post nothing.")
def command(
    *,
    records: tuple[str, ...],
    results: Path,
    policy: Policy,
    repo: str | None,
    pr: int | None,
    head: str | None,
    dashboard: str | None,
    dry_run: bool,
) -> None:
    """Judge, then post or print."""
    if not dry_run and (repo is None or pr is None):
        raise click.UsageError(
            "Give --repo and --pr to say where to post, or --dry-run to print only."
        )
    findings = findings_for(records, results, policy, ANY_TESTBEDS)
    runs = [report.contender.run_id for report in findings.reports]
    findings = replace(findings, searched=read_answers(results, runs))
    write = partial(render, findings, links=_links(dashboard, findings) if dashboard else "")
    if dry_run or repo is None or pr is None:
        click.echo(write().text, nl=False)
        if not findings.has_news:
            click.echo("no news: a pull request without a comment would get none", err=True)
        return
    pull = pull_request("comment", repo, pr, writes=True)
    if head is not None and head != pull.head:
        if not pull.has_commit(head):
            raise GithubError(f"{repo}#{pr}: commit {head} does not belong to this pull request")
        click.echo(f"comment: {head[:12]} is no longer the head of {repo}#{pr}; nothing to do")
        return
    click.echo(f"comment: {_comment(pull, findings, write)}")
    click.echo(f"check:   {_check(pull, findings, write)}")


def _links(dashboard: str, findings: ChangeReview) -> str:
    """Link to the page of each two builds, in Markdown."""
    sides = [
        (report.baseline.build.label, report.contender.build.label) for report in findings.reports
    ]
    return "\n\n".join(
        f"[{code(old)} against {code(new)} in every scenario]"
        f"(<{dashboard.rstrip('/')}/{builds_address(old, new).href()}>)"
        for old, new in dict.fromkeys(sides)
        if old != new
    )


def _comment(pull: "PullRequest", findings: ChangeReview, write: Callable[..., Page]) -> str:
    def text_after(body: str | None) -> str | None:
        before = None if body is None else news_in(body)
        if before is None and not findings.has_news:
            return None
        page = write(before)
        in_summary = page.left_out and write(before, SUMMARY_LIMIT).text
        if in_summary and not add_to_summary(in_summary):
            say(f"comment: {SUMMARY} is not set: the text that did not fit is lost", err=True)
        return with_verdict(body, page.text)

    return pull.comment(lambda body: news_in(body) is not None, text_after)


def _check(pull: "PullRequest", findings: ChangeReview, write: Callable[..., Page]) -> str:
    conclusion, title = findings.conclusion.value, one_line(render_title(findings))[:_LONGEST_TITLE]
    done = pull.check(pull.head, conclusion, title, write().text, run_address())
    return f"{conclusion}, {done}"
