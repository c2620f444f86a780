"""``hybridwatch profile``: which functions of the slower side take more time."""

from pathlib import Path

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import takes_results, verb
from hybridwatch.orchestration.nightly.profiling import profile_run
from hybridwatch.records.store import find_record, read_run
from hybridwatch.system.console_text import say
from hybridwatch.system.stopping import stoppable


@verb("profile", "latest", "a5fa7e47")
@click.argument("record", shell_complete=completion.records)
@takes_results("Folder in which run ids are looked up; it gets the profile.")
def command(*, record: str, results: Path) -> None:
    """Sample both builds of RECORD again under its load, and name what takes more time.

    RECORD is a record file, the id of a run, or "latest". Both engines are started, loaded in turn
    and sampled by py-spy, a hundred times a second. Nothing is timed. The stacks are stored under
    profiles/ of the results folder; the alert's page draws them, and a second call reads them. Up
    to five functions are named whose share of the engine's time grew beyond noise.
    """
    with stoppable():
        path = profile_run(read_run(find_record(results, record)), results, say)
    say(f"profile: {path}")
