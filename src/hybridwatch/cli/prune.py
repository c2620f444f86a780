"""``hybridwatch prune``: delete old records that nothing refers to."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.file_progress import file_progress
from hybridwatch.cli.options import examples, print_json, require_folder, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.records.store import list_records, read_examples
from hybridwatch.records.store.maintenance import (
    PrunePlan,
    RetentionPolicy,
    What,
    may_remove,
    plan_removals,
    remove,
)
from hybridwatch.reports.escape import one_line

PRUNE_SCHEMA = 1
_NAMED = 10
"""Protected runs that are named."""


@click.command(
    "prune",
    epilog=examples(
        "hybridwatch prune",
        "hybridwatch prune --answers-days 14 --every-days 90 --yes",
    ),
)
@takes_results("Folder that is pruned.")
@click.option(
    "--answers-days",
    type=click.IntRange(0),
    default=30,
    show_default=True,
    help="Answers beside older records go; verdicts on accuracy then cannot be had again.",
)
@click.option(
    "--every-days",
    type=click.IntRange(0),
    default=180,
    show_default=True,
    help="Of older records of one scenario, machine and builds one a week stays, the first.",
)
@click.option(
    "--triage",
    envvar="HYBRIDWATCH_TRIAGE",
    default="",
    metavar="URL",
    help="Database of what people decided.",
)
@click.option("--yes", is_flag=True, help="Remove the files; without it they are only named.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(results: Path, *, triage: str, yes: bool, as_json: bool, **days: int) -> None:
    """Delete what is old: first answers, then all but one record a week.

    Runs that something refers to stay whole: pinned baselines, those beside a change point, those
    that a stored verdict was made of, and those of alerts that are open or were acted on.
    """
    require_folder(results)
    console = Console(stderr=True)
    policy, now = RetentionPolicy(**days), datetime.now(UTC)
    records = list_records(results)
    if may_remove(records, read_examples(results), policy, now):
        plan = _planned(results, policy, now, triage, console)
    else:
        plan = PrunePlan((), len(records), {})
    if yes:
        with file_progress(console, "files") as say:
            for done, _ in enumerate(remove(results, plan.removals, now), start=1):
                say(done, len(plan.removals))
    if as_json:
        print_json(plan_to_json(plan, removed=yes))
    else:
        _print(plan, removed=yes)


def _planned(
    results: Path, policy: RetentionPolicy, now: datetime, triage: str, console: Console
) -> PrunePlan:
    """Judge and examine everything, to know which records are referenced."""
    # Most calls find nothing that is old, and need neither pandas nor a database.
    from hybridwatch.database.queries import open_index
    from hybridwatch.history.alerts import find_alerts
    from hybridwatch.history.resting import old_runs, runs_that_stay
    from hybridwatch.orchestration.nightly.checkout import checkout_here

    with file_progress(console, "records") as say:
        index = open_index(results, say)
    with file_progress(console, "series") as say:
        alerts = find_alerts(results, index, checkout_here(), now, triage)
        protected = runs_that_stay(results, index, alerts, say)
    return plan_removals(results, old_runs(index), protected, policy, now)


def plan_to_json(plan: PrunePlan, *, removed: bool) -> dict[str, Any]:
    """Give what goes and what stays as plain JSON; fields as in ``docs/json.md``."""
    return {
        "schema_version": PRUNE_SCHEMA,
        "removed": removed,
        "bytes": plan.size,
        "removals": [
            {"file": one.file, "what": one.what.value, "bytes": one.size} for one in plan.removals
        ],
        "kept": plan.kept,
        "protected": [{"run": run, "reason": why} for run, why in plan.protected.items()],
    }


def _print(plan: PrunePlan, *, removed: bool) -> None:
    counts = Counter(one.what for one in plan.removals)
    what = ", ".join(
        [
            f"the answers of {plural(counts[What.ANSWERS], 'run')}",
            plural(counts[What.RECORD], "record"),
        ]
    )
    verb = "removed" if removed else "would remove"
    click.echo(f"{verb} {decimal(plan.size)}: {what}; {plural(plan.kept, 'record')} stay")
    for run, why in list(plan.protected.items())[:_NAMED]:
        click.echo(f"stays whole: {run}: {one_line(why)}")
    if (more := len(plan.protected) - _NAMED) > 0:
        click.echo(f"and {plural(more, 'other')}")
    if plan.removals and not removed:
        click.echo("nothing was removed yet: --yes does it")
