"""``hybridwatch comment``: a comparison as a pull request comment."""

from pathlib import Path

import click

from hybridwatch.cli.sides import RECORDS_HELP, report_for, takes_records
from hybridwatch.errors import HybridwatchError
from hybridwatch.views.markdown import render_comment


@click.command("comment", help=f"Write a comparison as a pull request comment.\n\n{RECORDS_HELP}")
@takes_records
@click.option("--dry-run", is_flag=True, help="Print the Markdown and post nothing.")
def command(*, records: tuple[str, ...], results: Path, dry_run: bool) -> None:
    """Print the comment; posting it comes later."""
    if not dry_run:
        raise HybridwatchError(
            "comment: posting is not available yet; --dry-run prints the Markdown"
        )
    click.echo(render_comment(report_for(records, results)), nl=False)
