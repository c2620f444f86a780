"""``hybridwatch gpu campaign``: half an hour on a GPU, in order of worth."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples, takes_results
from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.records.store import check_writable
from hybridwatch.system.home import home, shipped_engine
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.gpu.campaign import Campaign, End, Entry, load_plan, run_campaign
from hybridwatch_lab.gpu.campaign.plan import PLAN_FILE, Plan, Subject

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
def command(
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
    subject = Subject(
        build=parse_label(build),
        older=parse_label(older),
        results=results.resolve(),
        models=home() / "models",
        harness=(sys.executable, "-m", "hybridwatch"),
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


def _list(plan: Plan, *, as_json: bool) -> None:
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


def _close(ends: Sequence[Entry], folder: Path, *, as_json: bool) -> None:
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
