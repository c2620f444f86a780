"""``hybridwatch fleet status``, ``hosts``, ``logs`` and ``cancel``: how the queue stands."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.text import Text

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.analysis.wording.numbers import age
from hybridwatch.cli.fleet_queue import open_queue, planned_queue
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.hosts import HostRegistry
from hybridwatch.orchestration.fleet.job import HostStatus, JobState
from hybridwatch.orchestration.fleet.lookup import find_job_log, key_like, open_in
from hybridwatch.orchestration.fleet.overview import HostLine, Overview, host_json, read_overview
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.console_text import say


@click.command(
    "status", epilog=examples("hybridwatch fleet status", "hybridwatch fleet status --json")
)
@takes_results("Folder whose database has the queue.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def status_command(results: Path, *, as_json: bool) -> None:
    """Say what is measured, what waits and why, what went wrong, and when it will be over."""
    overview = read_overview(open_queue(results))
    if as_json:
        print_json(overview.to_json())
        return
    if not overview.batches:
        say("the queue is empty; fill it: hybridwatch fleet plan")
        return
    _print_status(overview)


@click.command(
    "hosts",
    epilog=examples(
        "hybridwatch fleet hosts",
        "hybridwatch fleet hosts --lift epyc-3",
        "hybridwatch fleet hosts --quarantine epyc-3 --reason 'a new fan'",
    ),
)
@click.option("--lift", metavar="HOST", help="End a quarantine; a health check comes first.")
@click.option("--quarantine", metavar="HOST", help="Let one measure nothing.")
@click.option("--retire", metavar="HOST", help="One is gone for good: its series begin again.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for later readers.")
@takes_results("Folder whose database has the queue.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array (docs/json.md).")
def hosts_command(
    *,
    lift: str | None,
    quarantine: str | None,
    retire: str | None,
    reason: str,
    results: Path,
    as_json: bool,
) -> None:
    """List the hosts with what they last showed, or change what one may do."""
    wishes = {HostStatus.NEW: lift, HostStatus.QUARANTINED: quarantine, HostStatus.RETIRED: retire}
    for standing, name in wishes.items():
        if name is not None:
            job_queue = planned_queue(results)
            HostRegistry(job_queue.database, job_queue.clock).set_status(name, standing, reason)
    hosts = read_overview(open_queue(results)).hosts
    if as_json:
        print_json([host_json(host) for host in hosts])
    elif hosts:
        Console().print(_hosts_table(hosts))
    else:
        say("no host was seen yet; they come with: hybridwatch fleet run")


@click.command(
    "logs",
    epilog=examples(
        "hybridwatch fleet logs 1a2b3c4d", "hybridwatch fleet logs 1a2b3c4d --attempt 1"
    ),
)
@click.argument("job")
@click.option(
    "--attempt", type=click.IntRange(1), help="Which try.  [default: the last that ended]"
)
@takes_results("Folder whose database has the queue.")
def logs_command(job: str, attempt: int | None, results: Path) -> None:
    """Print what the measurement of JOB printed; JOB is its key, or the beginning of it."""
    job_queue = planned_queue(results)
    found = find_job_log(job_queue, job, attempt)
    try:
        click.echo((results / found).read_text(encoding="utf-8", errors="replace"), nl=False)
    except OSError as error:
        raise FleetError(f"{results / found}: cannot be read: {error.strerror}") from error


@click.command(
    "cancel",
    epilog=examples(
        "hybridwatch fleet cancel 1a2b3c4d", "hybridwatch fleet cancel --night 2026-11-21"
    ),
)
@click.argument("jobs", nargs=-1)
@click.option("--night", metavar="NAME", help="Every job of this night that is still open.")
@takes_results("Folder whose database has the queue.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cancel_command(
    jobs: tuple[str, ...], night: str | None, results: Path, *, as_json: bool
) -> None:
    """Cancel JOBS, by key or its beginning: those that wait at once, those that run soon."""
    if bool(jobs) == (night is not None):
        raise click.UsageError("expected either JOBS or --night.")
    job_queue = planned_queue(results)
    keys = (
        open_in(job_queue, night)
        if night is not None
        else [key_like(job_queue, job) for job in jobs]
    )
    count = job_queue.cancel(keys)
    if as_json:
        click.echo(json.dumps({"cancelled": count}))
    else:
        say(f"{plural(count, 'job')} cancelled")


VERBS: Final = (status_command, hosts_command, logs_command, cancel_command)


def _print_status(overview: Overview) -> None:
    nights = StackedTable(box=None, pad_edge=False)
    for name in ("night", *(state.value for state in JobState)):
        nights.add_column(name, justify="left" if name == "night" else "right")
    for batch in overview.batches:
        counts = (str(batch.states.get(state, 0) or "") for state in JobState)
        nights.add_row(Text(one_line(batch.name)), *counts)
    Console().print(nights)
    for one in overview.underway:
        since = age(one.since, overview.at)
        say(f"running  {one.job.key[:8]}  {one.host}: {one.job.title}, begun {since}")
    for reason, count in sorted((overview.waiting or {}).items()):
        say(f"waiting  {plural(count, 'job')}: {reason or 'queued'}")
    for trouble in overview.troubles:
        key = trouble.job.key[:8]
        say(f"{trouble.state.value:<8} {key}  {trouble.job.title}: {trouble.reason}")
    if overview.ends_at is not None:
        hours = (overview.ends_at - overview.at).total_seconds() / 3600
        say(f"over in about {hours:.1f} h, going by earlier measurements")


def _hosts_table(hosts: Sequence[HostLine]) -> StackedTable:
    table = StackedTable(box=None, pad_edge=False)
    for name in ("host", "state", "there", "series", "measures", "last A/A", "reason"):
        table.add_column(name)
    for host in hosts:
        steady = "" if host.a_a is None else f"{host.a_a - 1:+.1%}"
        there = "yes" if host.is_there else "no"
        cells = (host.name, host.standing.value, there, str(host.series), host.job[:8], steady)
        table.add_row(*(Text(one_line(cell)) for cell in (*cells, host.reason)))
    return table
