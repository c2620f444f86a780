"""``hybridwatch scenarios --from``: another project's workloads as scenario files."""

import json
from pathlib import Path

import click

from hybridwatch.cli.written_file import write_file
from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.workload_yaml import Carried, scenarios_of
from hybridwatch.system.console_text import say


def carry_over(workload: Path, out: Path, *, as_json: bool) -> None:
    """Write a scenario for each load of a workload, and say what it does not carry over.

    Raises:
        ScenarioError: The file is no workload, or there is another scenario where one belongs.
    """
    carried = scenarios_of(workload)
    files = {out / f"{one.scenario.id}.toml": one.text.encode() for one in carried.files}
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content:
            raise ScenarioError(f"{path}: expected no other scenario of this name; remove it first")
    for path, content in files.items():
        write_file(path, content)
    if as_json:
        click.echo(json.dumps(_to_json(list(files), carried), indent=2))
        return
    say(*(f"{path}: written" for path in files))
    say(*(f"{workload}: {note}" for note in carried.notes))


def _to_json(files: list[Path], carried: Carried) -> dict[str, object]:
    return {"written": [str(path) for path in files], "notes": list(carried.notes)}
