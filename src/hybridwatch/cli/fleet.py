"""``hybridwatch fleet``: many hosts, one queue."""

from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli import fleet_run, fleet_show
from hybridwatch.cli.fleet_queue import made_queue, planned_queue
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.database.queries import open_index
from hybridwatch.errors import FleetError
from hybridwatch.history.alerts import find_alerts
from hybridwatch.orchestration.fleet.job import Job
from hybridwatch.orchestration.fleet.job_queue import utc_now
from hybridwatch.orchestration.fleet.lookup import asked, known_pairs, left_today
from hybridwatch.orchestration.fleet.matrix import (
    MATRIX_FILE,
    Matrix,
    buildkite_steps,
    github_matrix,
    read_matrix,
)
from hybridwatch.orchestration.fleet.overview import job_json
from hybridwatch.orchestration.nightly.checkout import checkout_here
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home

_FORMS: Final = {"github": github_matrix, "buildkite": buildkite_steps}


@click.group(
    "fleet",
    epilog=examples(
        "hybridwatch fleet plan",
        "hybridwatch fleet run --address auto",
        "hybridwatch fleet status",
    ),
)
def command() -> None:
    """Measure on many hosts: plan jobs, drain the queue, see how it stands (docs/fleet.md)."""


command.add_command(fleet_run.command)
for _verb in fleet_show.VERBS:
    command.add_command(_verb)


@command.command(
    "plan",
    epilog=examples(
        "hybridwatch fleet plan",
        "hybridwatch fleet plan fleet.toml --night 1a2b3c4",
        "hybridwatch fleet plan --github",
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
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
    matrix = read_matrix(file or home() / MATRIX_FILE)
    now = utc_now()
    jobs = matrix.jobs(home() / "scenarios", night or f"{now:%Y-%m-%d}", now)
    if form in _FORMS:
        kinds = {testbed.name: testbed for testbed in matrix.testbeds}
        print_json(_FORMS[form](jobs, kinds))
        return
    if not jobs:
        raise FleetError(f"{matrix.path}: expected scenarios to measure, found none")
    _put(matrix, jobs, results, as_json=form == "json")


@command.command(
    "confirm",
    epilog=examples("hybridwatch fleet confirm", "hybridwatch fleet confirm fleet.toml --json"),
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@takes_results("Folder whose records have the alerts, and whose database has the queue.")
@click.option("--json", "as_json", is_flag=True, help="Print the jobs as JSON.")
def confirm_command(file: Path | None, results: Path, *, as_json: bool) -> None:
    """Put into the queue what open alerts ask for: the same pair again, then builds between.

    [confirm] of FILE says how many in a day, and in which order builds came.
    """
    matrix = read_matrix(file or home() / MATRIX_FILE)
    if matrix.confirm is None:
        raise FleetError(f"{matrix.path}: confirm: missing; expected a table with per_day")
    job_queue = planned_queue(results)
    now = utc_now()
    alerts = find_alerts(results, open_index(results), checkout_here(), now)
    known = known_pairs(job_queue)
    wanted = asked(alerts, known, matrix.confirm.order, now)
    jobs = wanted[: left_today(job_queue, matrix.confirm.per_day)]
    _put(matrix, jobs, results, as_json=as_json)
    if len(jobs) < len(wanted):
        say(f"{plural(len(wanted) - len(jobs), 'job')} more when the day is over", err=as_json)


def _put(matrix: Matrix, jobs: list[Job], results: Path, *, as_json: bool) -> None:
    job_queue = made_queue(results)
    new = job_queue.plan(jobs, matrix.testbeds)
    if as_json:
        content: dict[str, Any] = {"new": new, "jobs": [job_json(job) for job in jobs]}
        print_json(content)
        return
    known = f", {len(jobs) - new} known already" if new < len(jobs) else ""
    say(f"{plural(new, 'new job')}{known}, in {job_queue.database.name}")
    say("next: hybridwatch fleet run")
