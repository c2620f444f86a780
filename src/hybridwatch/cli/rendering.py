"""``hybridwatch page`` and ``openmetrics``: a results folder as files for others."""

import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from hybridwatch.cli.options import (
    FILE,
    leave,
    require_folder,
    takes_results,
    verb,
    write_file,
)
from hybridwatch.database.queries import open_index
from hybridwatch.errors import RecordError
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import read_query
from hybridwatch.pages.screens import SCREENS, ScreenSource, build_view
from hybridwatch.system.console_text import say


@verb("openmetrics", "", "--out /var/lib/node_exporter/hybridwatch.prom")
@takes_results("Folder whose records are told of.")
@click.option(
    "--out", type=FILE, help="File to write, whole or not at all.  [default: standard output]"
)
def openmetrics_command(results: Path, out: Path | None) -> None:
    """Print gauges in the OpenMetrics format.

    They tell the verdicts of the newest comparisons, when each scenario was measured last, open
    alerts, what is missing, records that cannot be read, and the queue and hosts of a fleet.
    ci/prometheus.rules.yml has rules for alerts.
    """
    require_folder(results)
    triage = os.environ.get("HYBRIDWATCH_TRIAGE", "")
    from hybridwatch.orchestration.nightly.gauges import to_openmetrics  # a page needs no client

    index, now = open_index(results), datetime.now(UTC)
    written = to_openmetrics(results, index, checkout_here(), now, triage)
    if out is None:
        click.echo(written, nl=False)
    else:
        write_file(out, written, told=True)


@verb("page", "run --query run=dcc7e0b6 --out run.html", "overview --out overview.html")
@click.argument("screen", type=click.Choice(list(SCREENS)))
@click.option("--query", default="", help="The part after the ? of the page's address.")
@takes_results("Folder whose records are shown.")
@click.option("--out", type=FILE, required=True, help="File to write.")
def page_command(screen: str, query: str, results: Path, out: Path) -> None:
    """Write a page of the dashboard as one HTML file.

    The file has the same words and numbers as the page whose address ends in SCREEN?QUERY, opens
    without a server, and contains the CSV of every table and chart. The exit status is 1 when the
    query names something that is not there; the file says so too. No file is written when the
    records cannot be shown.
    """
    from hybridwatch.pages.html import static_page

    if not results.is_dir():
        raise RecordError(f"{results}: no such folder; name one with --results")
    now = datetime.now(UTC)
    triage = os.environ.get("HYBRIDWATCH_TRIAGE", "")
    source = ScreenSource(results, open_index(results), now, triage, checkout=cache(checkout_here))
    document = build_view(source, read_query(screen, query))
    write_file(out, static_page(document, now).encode(), told=True)
    for complaint in document.complaints:
        say(complaint, err=True)
    leave(bad_news=document.complaints)
