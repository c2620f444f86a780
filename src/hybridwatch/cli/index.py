"""``hybridwatch index``: read what is new, so that nobody has to wait for it in the dashboard."""

from pathlib import Path

import click

from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.file_progress import file_progress
from hybridwatch.cli.options import examples, print_json, require_folder, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.database.queries import Index, open_index
from hybridwatch.reports.escape import one_line

INDEX_SCHEMA = 1


@click.command(
    "index",
    epilog=examples(
        "hybridwatch index",
    ),
)
@takes_results("Folder whose records are read.")
@click.option("--rebuild", is_flag=True, help="Read every record again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(results: Path, rebuild: bool, as_json: bool) -> None:
    """Update the index: the database of records, from which the dashboard reads.

    Only new records are read and judged. The dashboard does the same when it opens; a nightly run
    of this command saves that time. docs/database.md says what the database holds.
    """
    require_folder(results)
    with file_progress(Console(stderr=True), "records") as say:
        index = open_index(results, say, rebuild=rebuild)
    if as_json:
        print_json(index_to_json(index))
    else:
        _print(index)


def index_to_json(index: Index) -> dict[str, object]:
    """Give what the index holds as plain JSON; fields as in ``docs/json.md``."""
    broken = index.broken()
    return {
        "schema_version": INDEX_SCHEMA,
        "kept": index.kept,
        **index.counts,
        "unreadable": [
            {"record": record, "reason": reason}
            for record, reason in zip(broken["record"], broken["reason"], strict=True)
        ],
    }


def _print(index: Index) -> None:
    counts = index.counts
    click.echo(
        f"{plural(counts['records'], 'record')}, {plural(counts['values'], 'value')}, "
        f"{plural(counts['verdicts'], 'verdict')}"
    )
    broken = index.broken()
    for record, reason in zip(broken["record"], broken["reason"], strict=True):
        click.echo(f"{one_line(record)}: {one_line(reason)}", err=True)
    if not index.kept:
        click.echo("the database could not be written: records are read again each time", err=True)
