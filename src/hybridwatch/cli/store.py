"""``hybridwatch store`` and ``prune``: is the results folder whole, and what of it is old?"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli.options import (
    leave,
    print_json,
    takes_json,
    takes_results,
    verb,
    verb_group,
)
from hybridwatch.cli.terminal import file_progress
from hybridwatch.records.store import list_records, read_examples
from hybridwatch.records.store.layout import require_folder
from hybridwatch.records.store.maintenance import (
    SUMS,
    PrunePlan,
    RetentionPolicy,
    StoreCheck,
    What,
    add_digests,
    check_store,
    may_remove,
    plan_removals,
    remove,
)
from hybridwatch.reports.escape import one_line

_NAMED = 10
"""Protected runs that are named."""


@verb_group("store", "check")
def store_command() -> None:
    """Verify the results folder."""


@verb("check", "", "--repair", "--results s3://nightly-records/vllm --json", of=store_command)
@takes_results("Folder whose files are read.")
@click.option("--seal", is_flag=True, help=f"Write digests of records that have none to {SUMS}.")
@click.option("--repair", is_flag=True, help="Remove what a killed process left of a record.")
@takes_json()
def check(results: Path, seal: bool, repair: bool, as_json: bool) -> None:
    """Verify the checksum of every record and verdict.

    Exit status 1 when a file is damaged, was changed or is not there, or belongs to no record.
    """
    require_folder(results)
    with file_progress("files") as say:
        found = check_store(results, say, repair=repair)
    if seal and found.without_digest:
        add_digests(results, found.without_digest)
    if as_json:
        print_json(store_check_to_json(found, sealed=seal, repaired=repair))
    else:
        _print(found, sealed=seal, repaired=repair)
    leave(bad_news=found.wrong or (found.leftovers and not repair))


def store_check_to_json(found: StoreCheck, *, sealed: bool, repaired: bool) -> dict[str, Any]:
    """Give what was found as plain JSON; fields as in ``docs/json.md``."""
    return {
        "schema_version": 1,
        "records": found.records,
        "verdicts": found.verdicts,
        "wrong": [{"file": name, "reason": why} for name, why in found.wrong.items()],
        "without_digest": list(found.without_digest),
        "sealed": sealed,
        "leftovers": found.leftovers,
        "repaired": repaired,
    }


def _print(found: StoreCheck, *, sealed: bool, repaired: bool) -> None:
    click.echo(
        f"{plural(found.records, 'record')}, {plural(found.verdicts, 'verdict')}: "
        + (f"{len(found.wrong)} wrong" if found.wrong else "as they were written")
    )
    for name, why in found.wrong.items():
        click.echo(f"{one_line(name)}: {one_line(why)}", err=True)
    if found.without_digest:
        without = plural(len(found.without_digest), "record")
        unsealed = f"of schema version 1 without a digest; --seal writes it to {SUMS}"
        click.echo(f"{without} {f'had no digest: written to {SUMS}' if sealed else unsealed}")
    for name in found.leftovers:
        fate = "removed" if repaired else "--repair removes it"
        click.echo(f"{one_line(name)}: has no record, left by a process that was killed; {fate}")


@verb("prune", "", "--answers-days 14 --every-days 90 --yes")
@takes_results("Folder that is pruned.")
@click.option(
    "--answers-days",
    type=click.IntRange(0),
    default=30,
    show_default=True,
    help="Answers next to older records go; verdicts on accuracy then cannot be had again.",
)
@click.option(
    "--every-days",
    type=click.IntRange(0),
    default=180,
    show_default=True,
    help="Of older records of one scenario, machine and builds one a week stays, the first.",
)
@click.option("--yes", is_flag=True, help="Remove the files; without it they are only named.")
@takes_json()
def prune_command(results: Path, *, yes: bool, as_json: bool, **days: int) -> None:
    """Delete what is old: first answers, then all but one record a week.

    Runs that something refers to stay whole: pinned baselines, those next to a change point, those
    that a stored verdict was made of, and those of alerts that are open or were acted on.
    """
    require_folder(results)
    policy, now = RetentionPolicy(**days), datetime.now(UTC)
    records = list_records(results)
    if may_remove(records, read_examples(results), policy, now):
        plan = _planned(results, policy, now)
    else:
        plan = PrunePlan((), len(records), {})
    if yes:
        with file_progress("files") as say:
            for done, _ in enumerate(remove(results, plan.removals, now), start=1):
                say(done, len(plan.removals))
    if as_json:
        print_json(plan_to_json(plan, removed=yes))
    else:
        _print_plan(plan, removed=yes)


def _planned(results: Path, policy: RetentionPolicy, now: datetime) -> PrunePlan:
    """Judge and examine everything, to know which records are referenced."""
    # Most calls find nothing that is old, and need neither pandas nor a database.
    from hybridwatch.database.queries import open_index
    from hybridwatch.history.alerts import find_alerts
    from hybridwatch.history.resting import old_runs, runs_that_stay
    from hybridwatch.orchestration.nightly.checkout import checkout_here

    with file_progress("records") as say:
        index = open_index(results, say)
    with file_progress("series") as say:
        alerts = find_alerts(results, index, checkout_here(), now)
        protected = runs_that_stay(results, index, alerts, say)
    return plan_removals(results, old_runs(index), protected, policy, now)


def plan_to_json(plan: PrunePlan, *, removed: bool) -> dict[str, Any]:
    """Give what goes and what stays as plain JSON; fields as in ``docs/json.md``."""
    return {
        "schema_version": 1,
        "removed": removed,
        "bytes": plan.size,
        "removals": [
            {"file": one.file, "what": one.what.value, "bytes": one.size} for one in plan.removals
        ],
        "kept": plan.kept,
        "protected": [{"run": run, "reason": why} for run, why in plan.protected.items()],
    }


def _print_plan(plan: PrunePlan, *, removed: bool) -> None:
    counts = Counter(one.what for one in plan.removals)
    answers, gone = plural(counts[What.ANSWERS], "run"), plural(counts[What.RECORD], "record")
    size = f"{'removed' if removed else 'would remove'} {decimal(plan.size)}"
    click.echo(f"{size}: the answers of {answers}, {gone}; {plural(plan.kept, 'record')} stay")
    for run, why in list(plan.protected.items())[:_NAMED]:
        click.echo(f"stays whole: {run}: {one_line(why)}")
    if (more := len(plan.protected) - _NAMED) > 0:
        click.echo(f"and {plural(more, 'other')}")
    if plan.removals and not removed:
        click.echo("nothing was removed yet: --yes does it")
