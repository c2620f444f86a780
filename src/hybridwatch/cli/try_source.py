"""``hybridwatch try``: from a patched vLLM to an answer, in one command."""

from pathlib import Path
from typing import Final

import click

from hybridwatch.cli import run
from hybridwatch.cli.engine_add import lines_about
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.cli.subject_options import takes_base, takes_scenarios
from hybridwatch.engine.builds import BuildSpec
from hybridwatch.engine.check import check_build
from hybridwatch.engine.own_builds import add_python, add_source, add_wheel
from hybridwatch.errors import BuildError
from hybridwatch.home import home
from hybridwatch.record.run import Phase

NAME: Final = "mine"
SCENARIOS: Final = ("smoke",)
_PHASES: Final = (Phase.CONTRACT, Phase.ACCURACY)


@click.command(
    "try",
    epilog=examples(
        "hybridwatch try ~/vllm",
        "hybridwatch try ~/vllm smoke/padded-graph-rows --thorough",
    ),
)
@click.argument("source", metavar="SOURCE", type=click.Path(path_type=Path))
@takes_scenarios
@click.option(
    "--name", default=NAME, show_default=True, help="What the build is called, as `engine add` has."
)
@takes_base("The release that it is compared with.  [default: the nearest installed one]")
@click.option("--thorough", is_flag=True, help="Measure times as well, with all trials.")
@takes_results("Folder that gets the records.")
@click.pass_context
def command(
    context: click.Context,
    /,
    source: Path,
    scenarios: tuple[str, ...],
    name: str,
    *,
    base: str,
    thorough: bool,
    results: Path,
) -> None:
    """Measure your vLLM against the release that it comes from.

    SOURCE is a checkout of vLLM or a copy of its package, a wheel, or the interpreter of an
    environment. It is added, or added anew, as a build of your own. Then both sides run in turn:
    contracts of all scenarios first, then answers. SCENARIO is an id or a group.  [default: smoke]
    """
    build = _added(source, name, base)
    for line in lines_about(build, check_build(build)):
        click.echo(line)
    context.invoke(
        run.command,
        scenarios=scenarios or SCENARIOS,
        labels=(_release_of(build, base), build.name),
        phases=() if thorough else _PHASES,
        staged=True,
        results=results,
    )


def _added(source: Path, name: str, base: str) -> BuildSpec:
    if source.is_dir():
        return add_source(home(), name, source, base)
    if source.suffix == ".whl":
        return add_wheel(home(), name, source, base)
    return add_python(home(), name, source, base)


def _release_of(build: BuildSpec, base: str) -> str:
    if found := base or build.base:
        return found
    raise BuildError(f"{build.name}: has no release below it; --base names the one to compare with")
