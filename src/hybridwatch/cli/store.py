"""``hybridwatch store``: whether the results folder is as it was written."""

from pathlib import Path
from typing import Any

import click

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.file_progress import file_progress
from hybridwatch.cli.options import examples, print_json, require_folder, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.records.store.maintenance import SUMS, StoreCheck, add_digests, check_store
from hybridwatch.reports.escape import one_line

STORE_SCHEMA = 1


@click.group("store", epilog=examples("hybridwatch store check"))
def command() -> None:
    """Verify the results folder."""


@command.command(
    "check",
    epilog=examples(
        "hybridwatch store check",
        "hybridwatch store check --seal",
        "hybridwatch store check --results s3://nightly-records/vllm --json",
    ),
)
@takes_results("Folder whose files are read.")
@click.option("--seal", is_flag=True, help=f"Write digests of records that have none to {SUMS}.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
@click.pass_context
def check(ctx: click.Context, results: Path, seal: bool, as_json: bool) -> None:
    """Verify the checksum of every record and verdict.

    Exit status 1 when a file is damaged, was changed or is not there.
    """
    require_folder(results)
    with file_progress(Console(stderr=True), "files") as say:
        found = check_store(results, say)
    if seal and found.without_digest:
        add_digests(results, found.without_digest)
    if as_json:
        print_json(store_check_to_json(found, sealed=seal))
    else:
        _print(found, sealed=seal)
    ctx.exit(1 if found.wrong else 0)


def store_check_to_json(found: StoreCheck, *, sealed: bool) -> dict[str, Any]:
    """Give what was found as plain JSON; fields as in ``docs/json.md``."""
    return {
        "schema_version": STORE_SCHEMA,
        "records": found.records,
        "verdicts": found.verdicts,
        "wrong": [{"file": name, "reason": why} for name, why in found.wrong.items()],
        "without_digest": list(found.without_digest),
        "sealed": sealed,
        "leftovers": found.leftovers,
    }


def _print(found: StoreCheck, *, sealed: bool) -> None:
    click.echo(
        f"{plural(found.records, 'record')}, {plural(found.verdicts, 'verdict')}: "
        + (f"{len(found.wrong)} wrong" if found.wrong else "as they were written")
    )
    for name, why in found.wrong.items():
        click.echo(f"{one_line(name)}: {one_line(why)}", err=True)
    if found.without_digest:
        without = plural(len(found.without_digest), "record")
        if sealed:
            click.echo(f"{without} had no digest: written to {SUMS}")
        else:
            click.echo(
                f"{without} of schema version 1 without a digest; --seal writes it to {SUMS}"
            )
    for name in found.leftovers:
        click.echo(f"{one_line(name)}: has no record, left by a process that was killed")
