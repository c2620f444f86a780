"""Options that several verbs take, how a verb ends, and how this program was called."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.terminal import say
from hybridwatch.errors import ExportError, RecordError
from hybridwatch.records.store.layout import RESULTS_VARIABLE, results_folder, results_name
from hybridwatch.system.files import put
from hybridwatch.system.home import home_or_shipped, is_extending

_RESULTS: Final = Path("results")
_NAME: Final = "hybridwatch"
VerbFunction = Callable[..., Any]
VerbOption = Callable[[VerbFunction], VerbFunction]
"""Gives a verb an argument."""

FILE: Final = click.Path(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)


def write_file(path: Path, content: bytes, *, reported: bool = False) -> None:
    """Write a file, whole or not at all, and say so if wanted; folders on the way are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, content)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error
    if reported:
        say(f"{path}: {len(content)} bytes", err=True)


def examples(*commands: str) -> str:
    """Write the end of a verb's help: commands that can be typed as they stand."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def _epilog(path: str, calls: tuple[str, ...]) -> str:
    whole = [one if one.startswith(_NAME) else f"{_NAME} {path} {one}".rstrip() for one in calls]
    return examples(*whole)


def verb(
    name: str, *calls: str, of: click.Group | None = None, text: str | None = None
) -> Callable[[VerbFunction], click.Command]:
    """Make a verb, or one of a group, whose help is ``text`` or the docstring.

    ``calls`` end its help as examples: whole commands, or what follows the verb in one.
    """
    make, path = (click.command, name) if of is None else (of.command, f"{of.name} {name}")
    return make(name, epilog=_epilog(path, calls), help=text)


def verb_group(name: str, *calls: str) -> Callable[[VerbFunction], click.Group]:
    """Make a verb that has verbs of its own; ``calls`` are as for ``verb``."""
    return click.group(name, epilog=_epilog(name, calls))


def takes_json(says: str = "Print one JSON object (docs/json.md).") -> VerbOption:
    """Give a verb the argument ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=says)


def default_results() -> Path:
    """Give what ``HYBRIDWATCH_RESULTS`` names, else results of a home of one's own, else here."""
    if named := os.environ.get(RESULTS_VARIABLE):
        return results_folder(named)
    folder = home_or_shipped()
    return folder / _RESULTS if is_extending(folder) and folder != Path.cwd() else _RESULTS


class ResultsFolder(click.Path):
    """A results folder, or the URL of an object store that one mirrors."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Give the folder."""
        try:
            folder = results_folder(str(value))
        except RecordError as error:
            self.fail(str(error), param, ctx)
        return super().convert(folder, param, ctx)


def takes_results(says: str) -> VerbOption:
    """Give a verb the argument ``results``, a folder."""
    return click.option(
        "--results",
        type=ResultsFolder(path_type=Path, file_okay=False),
        default=default_results,
        show_default="results, of the home if there is one",
        help=says,
    )


def print_json(document: object) -> None:
    """Print what ``--json`` gives, as ``docs/json.md`` has it."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def leave(*, bad_news: object) -> None:
    """End a verb; the exit status is 1 when its answer is bad news."""
    if bad_news:
        raise click.exceptions.Exit(1)


def program(*, elsewhere: bool = False) -> str:
    """Give the words that start this program again, by whole paths from another folder.

    In a checkout that is ``.venv/bin/hybridwatch`` unless the environment is active.
    """

    def written(path: Path) -> str:
        whole, here = Path.cwd() / path, Path.cwd()
        below = whole.is_relative_to(here) and not elsewhere
        return shlex.quote(str(whole.relative_to(here) if below else whole))

    called = Path(sys.argv[0])
    if called.parts[-2:] == (_NAME, "__main__.py"):
        return f"{written(Path(sys.executable))} -m {_NAME}"
    if called.name != _NAME or not called.exists():
        return _NAME
    found = shutil.which(_NAME)
    if found is not None and Path(found).resolve() == called.resolve():
        return _NAME
    return written(called)


def with_results(results: Path) -> str:
    """Give the words that name a results folder; none for the one where verbs look anyway."""
    named = "" if results == default_results() else shlex.quote(results_name(results))
    return named and f" --results {named}"
