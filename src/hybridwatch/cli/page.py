"""``hybridwatch page``: a view of the dashboard as one HTML file."""

import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from hybridwatch.cli.options import examples, takes_results, write_file
from hybridwatch.database.queries import open_index
from hybridwatch.errors import RecordError
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import read_query
from hybridwatch.pages.screens import SCREENS, ScreenSource, open_view
from hybridwatch.system.console_text import say


@click.command(
    "page",
    epilog=examples(
        "hybridwatch page run --query run=dcc7e0b6 --out run.html",
        "hybridwatch page overview --out overview.html",
    ),
)
@click.argument("screen", type=click.Choice(list(SCREENS)))
@click.option("--query", default="", help="The part after the ? of the page's address.")
@takes_results("Folder whose records are shown.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File to write.",
)
def command(screen: str, query: str, results: Path, out: Path) -> None:
    """Write a page of the dashboard as one HTML file.

    The file has the same words and numbers as the page whose address ends in SCREEN?QUERY, opens
    without a server, and contains the CSV of every table and chart. The exit status is 1 when the
    query names something that is not there; the file says so too.
    """
    from hybridwatch.pages.html import static_page

    if not results.is_dir():
        raise RecordError(f"{results}: no such folder; name one with --results")
    now = datetime.now(UTC)
    triage = os.environ.get("HYBRIDWATCH_TRIAGE", "")
    source = ScreenSource(results, open_index(results), now, triage, checkout=cache(checkout_here))
    document = open_view(source, read_query(screen, query))
    written = static_page(document, now).encode()
    write_file(out, written)
    say(f"{out}: {len(written)} bytes", err=True)
    for complaint in document.complaints:
        say(complaint, err=True)
    if document.complaints:
        raise click.exceptions.Exit(1)
