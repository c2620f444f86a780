"""``hybridwatch engine``: the environments of engine builds."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from rich import box
from rich.padding import Padding
from rich.text import Text

from hybridwatch.cli import completion, engine_add
from hybridwatch.cli.options import examples, print_json
from hybridwatch.cli.terminal import Console
from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.check import BuildCheck, check_build
from hybridwatch.engines.install import InstallState, download, install, lock_digest, state
from hybridwatch.engines.other_python import BUILD, adopt
from hybridwatch.errors import BuildError
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.extensions import loaded
from hybridwatch.system.home import home


@click.group(
    "engine",
    epilog=examples(
        "hybridwatch engine list",
        "hybridwatch engine install cpu-0.27.1",
    ),
)
def command() -> None:
    """Make, list and check the environments of engine builds."""


command.add_command(engine_add.command)
for _command in loaded("hybridwatch.commands.engine").values():  # of other distributions
    command.add_command(_command)


@command.command(
    "install",
    epilog=examples(
        "hybridwatch engine install cpu-0.27.1",
        "hybridwatch engine install cuda-0.32.0 --no-gpu",
    ),
)
@click.argument("name", shell_complete=completion.builds)
@click.option(
    "--find-links",
    "wheels",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Take every package from this folder and none from an index; may be repeated.",
)
@click.option(
    "--no-gpu",
    is_flag=True,
    help="Require neither a GPU nor a driver: for an image that is made here and runs elsewhere.",
)
def install_command(name: str, *, wheels: tuple[Path, ...], no_gpu: bool) -> None:
    """Make the environment of build NAME from its lock, unless it is there already."""
    install(named_build(name), say=click.echo, wheels=wheels, needs_gpu=not no_gpu)


@command.command(
    "download",
    epilog=examples(
        "hybridwatch engine download cuda-0.32.0 wheels",
    ),
)
@click.argument("name", shell_complete=completion.builds)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def download_command(name: str, folder: Path) -> None:
    """Fetch every package of build NAME into FOLDER, for `install --find-links` without a network.

    Run this with the Python version of the other machine. It needs no GPU.
    """
    download(named_build(name), folder, say=click.echo)


@command.command(
    "adopt",
    epilog=examples(
        "hybridwatch engine adopt /tmp/adopted --accelerator cpu",
        "hybridwatch engine adopt /tmp/adopted --name cuda-0.23.0",
    ),
)
@click.argument("into", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--accelerator",
    type=click.Choice(["cpu", "cuda"]),
    default="cuda",
    show_default=True,
    help="What the engine computes on.",
)
@click.option(
    "--name",
    default=BUILD,
    show_default=True,
    help="Name of the build; INTO may hold several. The name of a build of the checkout adds its "
    "variants too.",
)
def adopt_command(into: Path, accelerator: str, name: str) -> None:
    """Register the environment of this Python as an engine build in the folder INTO.

    This is for environments that something else made, as asv does for a commit
    (ci/asv.vllm.conf.json). Set HYBRIDWATCH_HOME=INTO to measure the build.
    """
    build = adopt(Path(sys.executable), home(), into.resolve(), accelerator, name)
    click.echo(f"{build.name}: {build.distribution} {build.release} in {sys.prefix}")


@command.command(
    "list",
    epilog=examples(
        "hybridwatch engine list",
        "hybridwatch engine list --all",
    ),
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also show the fixes that each build switches, and its code.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_command(*, everything: bool, as_json: bool) -> None:
    """List the engine builds and whether they are installed."""
    builds = tuple(load_builds().values())
    # Asking an environment for its code starts a Python there: about a second for each.
    code = _compute_digests(builds) if as_json or everything else {}
    if as_json:
        entries = [_to_json(build, code.get(build.environment)) for build in builds]
        print_json({"builds": entries})
        return
    table = StackedTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("build", "release", "accelerator", "environment", "fixes switched"):
        table.add_column(title, no_wrap=True)
    for build in builds:
        known = (build.name, build.release, build.accelerator, state(build).value)
        table.add_row(*known, _switched(build))
    console = Console()
    console.print(table)
    for build in builds if everything else ():
        named = [f"{'+' if wanted else '~'}{fix}" for fix, wanted in build.switches.items()]
        if digest := code.get(build.environment):
            named.insert(0, f"code {digest[:12]}")
        if named:
            console.print(f"\n{build.name}", style="bold", markup=False, highlight=False)
            console.print(Padding(Text(" ".join(named)), (0, 0, 0, 2)))


def _switched(build: BuildSpec) -> str:
    put_in = sum(build.switches.values())
    counts = ((put_in, "in"), (len(build.fixes) - put_in, "out"))
    return ", ".join(f"{count} {way}" for count, way in counts if count) or "none"


@command.command(
    "check",
    epilog=examples(
        "hybridwatch engine check cpu-0.27.1",
    ),
)
@click.argument("name", shell_complete=completion.builds)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check_command(name: str, *, as_json: bool) -> None:
    """Show which fixes the code of build NAME has, with the evidence.

    A fix is present or lacking. It is changed as well where the code that decides it differs from
    that of every release known.
    """
    found = check_build(named_build(name))
    if as_json:
        print_json({"build": name, **_check_to_json(found)})
        return
    code = f", code {found.code_digest[:12]}" if found.code_digest else ""
    click.echo(f"{name}: {found.distribution} {found.release}{code}")
    table = StackedTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("fix", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    for fix, finding in found.fixes.items():
        changed = ", changed" if found.is_changed(fix) else ""
        table.add_row(fix, f"{finding.state}{changed}", finding.evidence)
    Console().print(table)
    for fault, how in found.faults.items():
        click.echo(f"{name}+{fault} plants a fault: {how}")


def _compute_digests(builds: Iterable[BuildSpec]) -> dict[Path, str]:
    """Digest of vLLM's Python files in each installed environment, as they are now.

    One that cannot tell is left out: a list is no place to fail for one of its lines.
    """
    installed = {b.environment: b for b in builds if state(b) is InstallState.INSTALLED}
    found: dict[Path, str] = {}
    for environment, build in installed.items():
        with suppress(BuildError):
            digest = check_build(build).code_digest
            if digest is not None:
                found[environment] = digest
    return found


def _to_json(build: BuildSpec, code_digest: str | None) -> dict[str, object]:
    return {
        "name": build.name,
        "release": build.release,
        "accelerator": build.accelerator,
        "distribution": build.distribution,
        "lock_digest": lock_digest(build),
        "code_digest": code_digest,
        "fixes": build.fixes,
        "state": state(build).value,
    }


def _check_to_json(found: BuildCheck) -> dict[str, object]:
    known = {
        "changed_files": found.changed_files,
        "revision": found.revision,
        "diff_digest": found.diff_digest,
    }
    return {
        "distribution": found.distribution,
        "release": found.release,
        "wheel_digest": found.wheel_digest,
        "code_digest": found.code_digest,
        **{name: value for name, value in known.items() if value is not None},
        "fixes": {
            fix: {
                "state": finding.state,
                "changed": found.is_changed(fix),
                "as_in": found.as_in(fix),
                "evidence": finding.evidence,
            }
            for fix, finding in found.fixes.items()
        },
        "faults": dict(found.faults),
    }
