"""``hybridwatch init``: a folder for own builds, scenarios, models, faults and fixes."""

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli.options import examples
from hybridwatch.cli.program import program
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.errors import BuildError
from hybridwatch.system.home import is_checkout_folder

_HIDDEN: Final = {"gitignore": ".gitignore"}
"""Files whose names would hide them from those who pack this package."""
_FIRST: Final = "mine/first"


@click.command("init", epilog=examples("hybridwatch init ~/hybridwatch"))
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def command(folder: Path) -> None:
    """Make DIR a home: a place for builds, scenarios, models, faults and fixes of your own.

    It extends what is shipped, and holds the environments of engines and the results. The files
    that it starts with explain themselves; one of them is a scenario that runs.
    """
    if is_checkout_folder(folder):
        raise BuildError(f"{folder}: is a checkout, which has everything; expected another folder")
    for path in make_home(folder):
        click.echo(f"  {path}")
    word = program(elsewhere=True)
    click.echo(f"{folder} is a home. Next:")
    for line in (
        f"cd {shlex.quote(str(folder))}",
        f"{word} engine install {DEFAULT_BUILD}",
        f"{word} run {_FIRST} --build {DEFAULT_BUILD} --phases contract",
    ):
        click.echo(f"  {line}")


def make_home(folder: Path) -> list[Path]:
    """Write the files that a home starts with.

    Returns:
        What was written.

    Raises:
        BuildError: One of the files is there already; then nothing is written.
    """
    with as_file(files("hybridwatch.cli") / "starter") as starter:
        files_there = (path for path in starter.rglob("*") if path.is_file())
        sources = sorted(path for path in files_there if path.suffix != ".pyc")
        names = [path.relative_to(starter) for path in sources]
        targets = [folder / name.with_name(_HIDDEN.get(name.name, name.name)) for name in names]
        for target in targets:
            if target.exists():
                raise BuildError(f"{target}: is there already; expected a folder without it")
        for source, target in zip(sources, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return targets
