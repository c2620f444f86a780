"""``hybridwatch page``, ``site`` and ``openmetrics``: a results folder as files for others."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import click

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli.options import (
    FILE,
    FOLDER,
    leave,
    print_json,
    takes_json,
    takes_results,
    verb,
    write_file,
)
from hybridwatch.cli.terminal import file_progress, say
from hybridwatch.database.queries import open_index
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.pages.address import read_query
from hybridwatch.pages.screens import SCREENS, ScreenSource, build_view
from hybridwatch.records.store.layout import require_folder


@verb("openmetrics", "", "--out /var/lib/node_exporter/hybridwatch.prom")
@takes_results("Folder whose records are shown.")
@click.option(
    "--out", type=FILE, help="File to write, whole or not at all.  [default: standard output]"
)
def openmetrics_command(results: Path, out: Path | None) -> None:
    """Print gauges in the OpenMetrics format.

    They show the verdicts of the newest comparisons, when each scenario was measured last, open
    alerts, what is missing, records that cannot be read, and the queue and hosts of a fleet.
    ci/prometheus.rules.yml has rules for alerts.
    """
    require_folder(results)
    from hybridwatch.orchestration.nightly.gauges import to_openmetrics  # a page needs no client

    index, now = open_index(results), datetime.now(UTC)
    written = to_openmetrics(results, index, checkout_here(), now)
    if out is None:
        click.echo(written, nl=False)
    else:
        write_file(out, written, reported=True)


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

    source = _open_source(results)
    document = build_view(source, read_query(screen, query))
    write_file(out, static_page(document, source.now).encode(), reported=True)
    for complaint in document.complaints:
        say(complaint, err=True)
    leave(bad_news=document.complaints)


@verb("site", "public", "public --nights 30 --base-url https://example.org/hybridwatch/ --json")
@click.argument("folder", metavar="OUT", type=FOLDER)
@takes_results("Folder whose records are shown.")
@click.option(
    "--nights",
    type=click.IntRange(min=1),
    default=90,
    show_default=True,
    help="Write a page for each run of so many nights up to the newest run.",
)
@click.option("--base-url", default="", help="Address of the site, for the links of its feed.")
@takes_json()
def site_command(folder: Path, results: Path, nights: int, base_url: str, as_json: bool) -> None:
    """Write all pages of the dashboard to OUT, a static site for everybody.

    It has the overview, each scenario, every alert, the runs of the last nights, the releases and
    what the suite sees, a feed of what changed (feed.xml) and a badge (badge.svg). It needs no
    server, opens from a disk and asks nothing of any other host. A later call writes the pages that
    changed, and removes those that are no more; other files in OUT stay.
    """
    from hybridwatch.pages.site import write_site

    if base_url and not base_url.startswith(("https://", "http://")):
        raise click.BadParameter(
            f"expected http:// or https://, found {base_url}", param_hint="--base-url"
        )
    source = _open_source(results)
    with file_progress("pages") as tell:
        base = base_url.rstrip("/") + "/" if base_url else ""
        change = write_site(source, folder, nights=nights, base_url=base, on_progress=tell)
    if as_json:
        print_json(change.to_json())
    else:
        size = f"{change.bytes / 1e6:.1f} MB"
        did = f"{change.written} written, {change.removed} removed"
        say(f"{folder}: {plural(change.files, 'file')}, {size}; {did}")


def _open_source(results: Path) -> ScreenSource:
    require_folder(results)
    now = datetime.now(UTC)
    return ScreenSource(results, open_index(results), now, checkout=cache(checkout_here))
