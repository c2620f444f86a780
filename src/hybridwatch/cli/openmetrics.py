"""``hybridwatch openmetrics``: how a results folder stands, for Prometheus."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from hybridwatch.cli.options import examples, require_folder, takes_results, write_file
from hybridwatch.database.queries import open_index
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.orchestration.nightly.gauges import to_openmetrics
from hybridwatch.system.console_text import say


@click.command(
    "openmetrics",
    epilog=examples(
        "hybridwatch openmetrics",
        "hybridwatch openmetrics --out /var/lib/node_exporter/hybridwatch.prom",
    ),
)
@takes_results("Folder whose records are told of.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, whole or not at all.  [default: standard output]",
)
def command(results: Path, out: Path | None) -> None:
    """Print gauges in the OpenMetrics format.

    They tell the verdicts of the newest comparisons, when each scenario was measured last, open
    alerts, what is missing, records that cannot be read, and the queue and hosts of a fleet.
    ci/prometheus.rules.yml has rules for alerts.
    """
    require_folder(results)
    triage = os.environ.get("HYBRIDWATCH_TRIAGE", "")
    index, now = open_index(results), datetime.now(UTC)
    written = to_openmetrics(results, index, checkout_here(), now, triage)
    if out is None:
        click.echo(written, nl=False)
        return
    write_file(out, written)
    say(f"{out}: {len(written)} bytes", err=True)
