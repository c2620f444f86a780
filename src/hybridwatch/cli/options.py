"""Options that several verbs take, and the files that they are asked to write."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.errors import ExportError, RecordError
from hybridwatch.records.store.layout import RESULTS_VARIABLE, results_folder
from hybridwatch.system.home import home_or_shipped, is_extending

_RESULTS: Final = Path("results")
_Verb = Callable[..., Any]


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; folders on the way are made.

    Raises:
        ExportError: It cannot be written.
    """
    half = path.with_name(f".{path.name}.half")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(content)
        half.replace(path)
    except OSError as error:
        with suppress(OSError):
            half.unlink()
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error


def examples(*commands: str) -> str:
    """Write the end of a verb's help: commands that can be typed as they stand."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def default_results() -> Path:
    """Give the folder in which verbs look for records when nobody says where.

    That which ``HYBRIDWATCH_RESULTS`` names; else that of the home, when it is one that extends
    what is shipped; else the one right here.

    Raises:
        RecordError: The variable has a URL that is no object store's.
    """
    if named := os.environ.get(RESULTS_VARIABLE):
        return results_folder(named)
    folder = home_or_shipped()
    return folder / _RESULTS if is_extending(folder) and folder != Path.cwd() else _RESULTS


class ResultsFolder(click.Path):
    """A results folder, or the URL of an object store that one mirrors."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the folder."""
        try:
            folder = results_folder(str(value))
        except RecordError as error:
            self.fail(str(error), param, ctx)
        return super().convert(folder, param, ctx)


def require_folder(results: Path) -> None:
    """Refuse a results folder that is not there, with a ``RecordError``."""
    if not results.is_dir():
        raise RecordError(f"--results {results}: expected a folder of records")


def takes_results(says: str) -> Callable[[_Verb], _Verb]:
    """Give a verb the argument ``results``, a folder."""
    return click.option(
        "--results",
        type=ResultsFolder(),
        default=default_results,
        show_default="results, of the home if there is one",
        help=says,
    )


def print_json(document: object) -> None:
    """Print what ``--json`` gives, as ``docs/json.md`` has it."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))
