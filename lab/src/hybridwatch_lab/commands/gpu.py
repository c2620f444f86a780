"""``hybridwatch gpu``: a machine with a GPU, there for half an hour, often without a network."""

import sys
from typing import Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples
from hybridwatch.engines.builds import parse_label
from hybridwatch.measurement.testbed import facts_of
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.commands import gpu_campaign, gpu_pack

_BAD_NEWS: Final = 1
_BUILD: Final = "cuda-0.33.0"
_SCENARIO: Final = {"cuda": "gpu/padded-graph-rows", "cpu": "smoke/padded-graph-rows"}


@click.group(
    "gpu",
    epilog=examples(
        "hybridwatch gpu pack --for machine.txt --build cuda-0.21.0 --out /tmp/pack-0.21.0",
        "hybridwatch gpu facts",
        "hybridwatch gpu campaign --minutes 25",
    ),
)
def command() -> None:
    """Use a rented GPU well: prepare it, then measure the most important things first."""


command.add_command(gpu_pack.command)
command.add_command(gpu_campaign.command)


@command.command(
    "facts",
    epilog=examples(
        "hybridwatch gpu facts",
        "hybridwatch gpu facts --build cpu-0.27.1",
    ),
)
@click.option("--build", default=_BUILD, show_default=True, shell_complete=completion.builds)
def facts_command(build: str) -> None:
    """Describe this machine and a build, one line of JSON for each fact.

    The facts are driver, clocks, imports, the fixes in the code, and whether an engine starts and
    answers. The exit status is 1 when one of them is missing.
    """
    request = parse_label(build)
    (scenario,) = find(home() / "scenarios", [_SCENARIO[request.spec.accelerator]])
    broken = 0
    with stoppable():
        for fact in facts_of(request, scenario, home() / "models"):
            click.echo(fact.to_json())
            if fact.error:
                broken += 1
                click.echo(f"hybridwatch: {fact.name}: {fact.error}", err=True)
    sys.exit(_BAD_NEWS if broken else 0)
