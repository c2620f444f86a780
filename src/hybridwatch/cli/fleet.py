"""``hybridwatch fleet``: many hosts, one queue, what drains it and how it stands."""

import json
from pathlib import Path
from typing import Final

import click
from rich.text import Text

from hybridwatch.analysis.wording.numbers import age, plural
from hybridwatch.cli.notify import channels_here, tell_at_the_end
from hybridwatch.cli.options import (
    FILE,
    leave,
    print_json,
    takes_json,
    takes_results,
    verb,
    verb_group,
)
from hybridwatch.cli.terminal import Console, say
from hybridwatch.database.queries import open_index
from hybridwatch.errors import FleetError
from hybridwatch.history.alerts import find_alerts
from hybridwatch.orchestration.fleet.cluster import Cluster
from hybridwatch.orchestration.fleet.driver import DriverSettings, DriverSummary, QueueDriver
from hybridwatch.orchestration.fleet.hosts import HostRegistry
from hybridwatch.orchestration.fleet.job import AttemptEnd, HostStatus, Job, JobState
from hybridwatch.orchestration.fleet.job_queue import made_queue, open_queue, planned_queue, utc_now
from hybridwatch.orchestration.fleet.lookup import (
    find_confirmations,
    find_job_log,
    key_like,
    known_pairs,
    left_today,
    open_in,
)
from hybridwatch.orchestration.fleet.matrix import (
    MATRIX_FILE,
    Matrix,
    buildkite_steps,
    github_matrix,
    read_confirm,
    read_matrix,
)
from hybridwatch.orchestration.fleet.measuring import LocalCluster
from hybridwatch.orchestration.fleet.overview import Overview, host_json, job_json, read_overview
from hybridwatch.orchestration.nightly.checkout import checkout_here, policy_here
from hybridwatch.records.store import check_writable
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

_FORMS: Final = {"github": github_matrix, "buildkite": buildkite_steps}


@verb_group("fleet", "plan", "run --address auto", "status")
def command() -> None:
    """Measure on many hosts: plan jobs, drain the queue, see how it stands (docs/fleet.md)."""


@verb("plan", "", "fleet.toml --night 1a2b3c4", "--github", of=command)
@click.argument("file", required=False, type=FILE)
@click.option(
    "--night",
    metavar="NAME",
    help="A date, a commit, or what else tells this round from others.  [default: today, UTC]",
)
@takes_results("Folder whose database has the queue.")
@click.option("--github", "form", flag_value="github", help="Print a matrix for GitHub Actions.")
@click.option("--buildkite", "form", flag_value="buildkite", help="Print steps for Buildkite.")
@click.option("--json", "form", flag_value="json", help="Print the new queue's jobs as JSON.")
def plan_command(file: Path | None, night: str | None, results: Path, form: str | None) -> None:
    """Put the jobs of FILE into the queue; those that are there stay as they are.

    FILE is fleet.toml of the home, if it is not named. With --github or --buildkite nothing is put
    anywhere: the same jobs are printed for a pipeline to run.
    """
    matrix, now = read_matrix(file or home() / MATRIX_FILE), utc_now()
    jobs = matrix.jobs(home() / "scenarios", night or f"{now:%Y-%m-%d}", now)
    if form in _FORMS:
        kinds = {testbed.name: testbed for testbed in matrix.testbeds}
        print_json(_FORMS[form](jobs, kinds))
        return
    if not jobs:
        raise FleetError(f"{matrix.path}: expected scenarios to measure, found none")
    _put(matrix, jobs, results, as_json=form == "json")


@verb("confirm", "", "fleet.toml --json", of=command)
@click.argument("file", required=False, type=FILE)
@takes_results("Folder whose records have the alerts, and whose database has the queue.")
@takes_json("Print the jobs as JSON.")
def confirm_command(file: Path | None, results: Path, *, as_json: bool) -> None:
    """Put into the queue what open alerts ask for: the same pair again, then builds between.

    [confirm] of FILE says how many in a day, and in which order builds came.
    """
    matrix, confirm = read_confirm(file or home() / MATRIX_FILE)
    job_queue, now = planned_queue(results), utc_now()
    alerts = find_alerts(results, open_index(results), checkout_here(), now)
    wanted = find_confirmations(alerts, known_pairs(job_queue), confirm.order, now)
    jobs = wanted[: left_today(job_queue, confirm.per_day)]
    _put(matrix, jobs, results, as_json=as_json)
    if len(jobs) < len(wanted):
        say(f"{plural(len(wanted) - len(jobs), 'job')} more when the day is over", err=as_json)


def _put(matrix: Matrix, jobs: list[Job], results: Path, *, as_json: bool) -> None:
    job_queue = made_queue(results)
    new = job_queue.plan(jobs, matrix.testbeds)
    if as_json:
        print_json({"new": new, "jobs": [job_json(job) for job in jobs]})
        return
    known = f", {len(jobs) - new} known already" if new < len(jobs) else ""
    say(f"{plural(new, 'new job')}{known}, in {job_queue.database.name}")
    say("next: hybridwatch fleet run")


_LOCAL: Final = "local"
_OPEN_DOOR: Final = (
    "Ray runs whatever reaches its ports: keep them in a private network, and set "
    "RAY_AUTH_MODE=token on every host (docs/fleet.md)"
)


@verb("run", "", "--label kind=epyc", "--address auto --patience 600", of=command)
@click.option(
    "--address",
    default=_LOCAL,
    show_default=True,
    metavar="ADDRESS",
    help="local for this machine alone; auto, HOST:PORT or ray://HOST:PORT for a Ray cluster.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --address local, what this machine is; may be repeated.",
)
@click.option(
    "--gpus", type=click.IntRange(0), default=0, help="With --address local, the GPUs it has."
)
@click.option(
    "--tries",
    type=click.IntRange(1, 10),
    default=3,
    show_default=True,
    help="How often a job is tried that leaves no record.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="Seconds to stay while nothing can be started, since hosts may come back.",
)
@takes_results("Folder that gets the records, and whose database has the queue.")
@takes_json("Print one JSON object at the end.")
def run_command(
    *,
    address: str,
    labels: tuple[str, ...],
    gpus: int,
    tries: int,
    patience: float,
    results: Path,
    as_json: bool,
) -> None:
    """Measure what is in the queue, until nothing is left that can be.

    Several may run at once on a PostgreSQL, and each may be ended at any time: the next one
    goes on. The exit status is 1 when a job was given up, or waits for a host that is not there.
    Where the home has a notify.toml, what is new is sent (docs/notify.md); what does not get
    through is kept, and the exit status is 1 as well.
    """
    channels, policy = channels_here(), policy_here()
    check_writable(results)
    job_queue = open_queue(results, tries)
    cluster = _cluster(address, labels, gpus)
    driver = QueueDriver(
        job_queue=job_queue,
        cluster=cluster,
        results=results,
        say=lambda line: say(line, err=as_json),
        settings=DriverSettings(patience_s=patience),
    )
    with stoppable():
        summary = driver.drain()
    _print_summary(summary, as_json=as_json)
    sent = tell_at_the_end(channels, results, policy, err=as_json)
    leave(bad_news=summary.given_up or summary.left or not sent)


def _cluster(address: str, labels: tuple[str, ...], gpus: int) -> Cluster:
    if address == _LOCAL:
        return LocalCluster.of_this_machine(dict(map(_label, labels)), gpus)
    if labels or gpus:
        raise click.UsageError("--label and --gpus: only --address local takes them.")
    try:
        from hybridwatch.orchestration.fleet.ray_cluster import RayCluster
    except ModuleNotFoundError as error:
        raise FleetError(
            f"--address {address}: needs the Python module {error.name!r}: "
            'pip install "hybridwatch[fleet]"'
        ) from error
    say(_OPEN_DOOR, err=True)
    return RayCluster(address)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise click.UsageError(f"--label: expected KEY=VALUE, found {text!r}.")
    return key, value


def _print_summary(summary: DriverSummary, *, as_json: bool) -> None:
    ends = {end.value: summary.ends[end] for end in AttemptEnd}
    if as_json:
        print_json({"attempts": ends, "left": dict(summary.left)})
    else:
        say(f"{plural(summary.ends[AttemptEnd.STORED], 'record')} stored")
        if summary.given_up:
            say(f"{plural(summary.given_up, 'job')} given up; see: hybridwatch fleet status")
        for reason, count in sorted(summary.left.items()):
            say(f"{plural(count, 'job')} left: {reason or 'a driver went before their turn'}")


@verb("status", "", "--json", of=command)
@takes_results("Folder whose database has the queue.")
@takes_json()
def status_command(results: Path, *, as_json: bool) -> None:
    """Say what is measured, what waits and why, what went wrong, and when it will be over."""
    overview = read_overview(open_queue(results))
    if as_json:
        print_json(overview.to_json())
    elif overview.batches:
        _print_status(overview)
    else:
        say("the queue is empty; fill it: hybridwatch fleet plan")


_WISHES: Final = {
    "lift": HostStatus.NEW,
    "quarantine": HostStatus.QUARANTINED,
    "retire": HostStatus.RETIRED,
}


@verb("hosts", "", "--lift epyc-3", "--quarantine epyc-3 --reason 'a new fan'", of=command)
@click.option("--lift", metavar="HOST", help="End a quarantine; a health check comes first.")
@click.option("--quarantine", metavar="HOST", help="Let one measure nothing.")
@click.option("--retire", metavar="HOST", help="One is gone for good: its series begin again.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for later readers.")
@takes_results("Folder whose database has the queue.")
@takes_json("Print one JSON array (docs/json.md).")
def hosts_command(results: Path, *, reason: str, as_json: bool, **wishes: str | None) -> None:
    """List the hosts with what they last showed, or change what one may do."""
    for wish, standing in _WISHES.items():
        if (name := wishes[wish]) is not None:
            job_queue = planned_queue(results)
            HostRegistry(job_queue.database, job_queue.clock).set_status(name, standing, reason)
    hosts = read_overview(open_queue(results)).hosts
    if as_json:
        print_json([host_json(host) for host in hosts])
        return
    if not hosts:
        say("no host was seen yet; they come with: hybridwatch fleet run")
        return
    titles = ("host", "state", "there", "series", "measures", "last A/A", "reason")
    table = StackedTable(*titles, box=None, pad_edge=False)
    for host in hosts:
        steady = "" if host.a_a is None else f"{host.a_a - 1:+.1%}"
        there = "yes" if host.is_there else "no"
        cells = (host.name, host.standing.value, there, str(host.series), host.job[:8], steady)
        table.add_row(*(Text(one_line(cell)) for cell in (*cells, host.reason)))
    Console().print(table)


@verb("logs", "1a2b3c4d", "1a2b3c4d --attempt 1", of=command)
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


@verb("cancel", "1a2b3c4d", "--night 2026-11-21", of=command)
@click.argument("jobs", nargs=-1)
@click.option("--night", metavar="NAME", help="Every job of this night that is still open.")
@takes_results("Folder whose database has the queue.")
@takes_json("Print one JSON object.")
def cancel_command(
    jobs: tuple[str, ...], night: str | None, results: Path, *, as_json: bool
) -> None:
    """Cancel JOBS, by key or its beginning: those that wait at once, those that run soon."""
    if bool(jobs) == (night is not None):
        raise click.UsageError("expected either JOBS or --night.")
    job_queue = planned_queue(results)
    keys = [key_like(job_queue, job) for job in jobs]
    count = job_queue.cancel(keys if night is None else open_in(job_queue, night))
    if as_json:
        click.echo(json.dumps({"cancelled": count}))
    else:
        say(f"{plural(count, 'job')} cancelled")


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
