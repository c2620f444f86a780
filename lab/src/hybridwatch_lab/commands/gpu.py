"""``hybridwatch gpu``: a machine with a GPU, there for half an hour, often without a network."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.engines.builds import named_build, parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.errors import BuildError
from hybridwatch.records.store import check_writable
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home, shipped_engine
from hybridwatch.system.python_command import python_command
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.gpu.campaign.plan import PLAN_FILE, CampaignPlan, CampaignSubject, load_plan
from hybridwatch_lab.gpu.campaign.runner import Campaign, End, StageEntry, run_campaign
from hybridwatch_lab.gpu.facts import list_facts
from hybridwatch_lab.gpu.pack.pack import PackRequest, make_pack, read_left_out
from hybridwatch_lab.gpu.pack.resolve import GIVEN, read_machine

_MB: Final = 10**6


@click.command(
    "pack",
    epilog=examples(
        "hybridwatch gpu pack --for machine.txt --build cuda-0.33.0 --out /tmp/pack-0.33.0",
    ),
)
@click.option(
    "--for",
    "machine",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What `pip list` prints on the machine (any format), or `pip inspect`.",
)
@click.option(
    "--build",
    default="cuda-0.33.0",
    show_default=True,
    shell_complete=completion.builds,
    help="The engine build to pack.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write: carry/ goes to the machine, wheels/ has what was fetched.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    default=Path(sys.executable),
    help="An interpreter here with the machine's version of Python.  [default: this one]",
)
@click.option(
    "--glibc", default="2.34", show_default=True, help="The machine's C library, or an older one."
)
@click.option(
    "--piece-mb",
    type=click.FloatRange(min=0.001),
    default=36,
    show_default=True,
    help="Largest size of a piece, in millions of bytes.",
)
@click.option(
    "--any-torch",
    is_flag=True,
    help="Take the machine's torch and Triton as they are. vLLM's kernels call torch through its "
    "stable ABI since 0.24.0, so an older torch may do.",
)
@click.option("--keep", multiple=True, help="Pack this entry of engine/pack.toml anyway.")
@click.option("--leave-out", "also", multiple=True, help="Leave out this optional entry, too.")
@click.option(
    "--find-links",
    "wheels",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Take every package from this folder and none from an index; may be repeated.",
)
def pack_command(
    *,
    machine: Path,
    build: str,
    out: Path,
    python: Path,
    glibc: str,
    piece_mb: float,
    any_torch: bool,
    keep: tuple[str, ...],
    also: tuple[str, ...],
    wheels: tuple[Path, ...],
) -> None:
    """Pack what a CUDA build needs on a machine that has torch but no network.

    This finds the smallest set of wheels, leaves out what is never loaded (engine/pack.toml), and
    writes pieces with a script that makes an environment from them on the machine.
    """
    spec = named_build(build)
    if spec.accelerator != "cuda":
        raise BuildError(f"{build}: expected a build for CUDA, such as cuda-0.33.0")
    spec = named_build(spec.variant_of, spec.home) if spec.variant_of else spec
    left_out = read_left_out(spec.home, keep=keep, also=also)
    if any_torch:
        left_out = replace(left_out, as_it_is=left_out.as_it_is | {*GIVEN})
    piece_bytes = int(piece_mb * _MB)
    request = PackRequest(
        spec, read_machine(machine), left_out, out, piece_bytes, python, glibc, wheels
    )
    pack = make_pack(request, say=click.echo)
    size = sum(piece.size for piece in pack.pieces)
    click.echo(
        f"{len(pack.packages)} packages in {len(pack.pieces)} pieces, {size / _MB:.1f} MB; "
        f"left out of their wheels: {sum(pack.left_behind.values()) / _MB:.0f} MB, unpacked"
    )
    click.echo(f"carry {pack.folder} over, then run there: bash put-together.sh --into DIR")


_BAD_NEWS: Final = 1
_MINUTES: Final = 25.0
_BUILD, _OLDER = "cuda-0.33.0", "cuda-0.21.0"


@click.command(
    "campaign",
    epilog=examples(
        "hybridwatch gpu campaign --minutes 25",
        "hybridwatch gpu campaign --minutes 10 --resume",
        "hybridwatch gpu campaign --build cpu-0.27.1 --older cpu-0.27.1 --slowdown 4 --stage facts",
    ),
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=_MINUTES,
    show_default=True,
    help="After this time nothing starts, and what still runs is ended.",
)
@click.option(
    "--build",
    default=_BUILD,
    show_default=True,
    shell_complete=completion.builds,
    help="The build that most stages measure.",
)
@click.option(
    "--older",
    default=_OLDER,
    show_default=True,
    shell_complete=completion.builds,
    help="A release that lacks the fixes.",
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE",
    help="Only this stage; may be repeated.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the stages.  [default: engine/campaign.toml of the checkout]",
)
@click.option(
    "--slowdown",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Multiply each stage's limit; an engine on a CPU needs about 4.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the campaign.  [default: campaigns/<date> in the results folder]",
)
@click.option("--resume", is_flag=True, help="Skip the stages that have answered in FOLDER.")
@click.option("--list", "only_list", is_flag=True, help="List the stages and run none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@takes_results("Folder that gets the records.")
def campaign_command(
    *,
    minutes: float,
    build: str,
    older: str,
    stages: tuple[str, ...],
    plan_file: Path | None,
    slowdown: float,
    folder: Path | None,
    resume: bool,
    only_list: bool,
    as_json: bool,
    results: Path,
) -> None:
    """Run the stages of engine/campaign.toml, the most important first, each with a time limit.

    Each stage saves its records, or what it prints, before the next one begins. If a stage fails,
    the end of its log is shown and the next one begins. After an interruption, --resume continues.
    The exit status is 1 when a stage did not answer, or answered with bad news.
    """
    subject = CampaignSubject(
        build=parse_label(build),
        older=parse_label(older),
        results=results.resolve(),
        models=home() / "models",
        harness=python_command("-m", "hybridwatch"),
        slowdown=slowdown,
    )
    plan = load_plan(plan_file or shipped_engine(home()) / PLAN_FILE.name, subject)
    plan = plan.only(stages) if stages else plan
    if only_list:
        _list(plan, as_json=as_json)
        return
    for request in (subject.build, subject.older):
        require_installed(request.spec)
    check_writable(results)
    where = folder or results / "campaigns" / datetime.now(UTC).date().isoformat()
    campaign = Campaign(plan, where.resolve(), results.resolve(), minutes * 60)
    with stoppable():
        ends = run_campaign(campaign, lambda line: click.echo(line, err=as_json), resume=resume)
    _close(ends, where, as_json=as_json)


def _list(plan: CampaignPlan, *, as_json: bool) -> None:
    if as_json:
        stages = [
            {"id": one.id, "why": one.why, "limit_s": one.limit_s, "command": one.command}
            for one in plan.stages
        ]
        click.echo(json.dumps({"stages": stages, "left_out": dict(plan.left_out)}, indent=2))
        return
    for stage in plan.stages:
        click.echo(f"{stage.id:24} {stage.limit_s:5.0f} s  {stage.why}")
    for name, reason in plan.left_out.items():
        click.echo(f"{name:24}          left out: {reason}")
    click.echo(f"{len(plan.stages)} stages, {plan.limit_s / 60:.1f} min by their limits")


def _close(ends: Sequence[StageEntry], folder: Path, *, as_json: bool) -> None:
    """Show the end of each log that matters, where everything lies, and what to do next."""
    if as_json:
        click.echo(json.dumps({"stages": [one.model_dump(mode="json") for one in ends]}, indent=2))
    else:
        for entry in ends:
            if entry.tail and not entry.end.is_final:
                click.echo(f"\n{entry.stage}, the end of its log:\n{entry.tail.rstrip()}")
        answered = sum(one.end.is_final for one in ends)
        click.echo(f"\n{answered} of {len(ends)} stages answered; everything is in {folder}")
        if answered < len(ends):
            click.echo("to run the others: the same command with --resume")
    sys.exit(0 if all(one.end is End.ANSWERED for one in ends) else _BAD_NEWS)


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


command.add_command(pack_command)
command.add_command(campaign_command)


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
        for fact in list_facts(request, scenario, home() / "models"):
            click.echo(fact.to_json())
            if fact.error:
                broken += 1
                click.echo(f"hybridwatch: {fact.name}: {fact.error}", err=True)
    sys.exit(_BAD_NEWS if broken else 0)
