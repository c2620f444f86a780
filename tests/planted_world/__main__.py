"""The command: write a world, or ask the product about one (``python -m tests.planted_world``)."""

import json
import sys
from pathlib import Path

import click

from tests.planted_world.plan import (
    MORE,
    NOTHING,
    SCENARIOS,
    SHORTEST,
    TESTBEDS,
    plan_nothing,
    plan_world,
)
from tests.planted_world.records import write_world
from tests.planted_world.score import score


@click.group(invoke_without_command=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to write.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--nights", type=click.IntRange(SHORTEST), default=90, show_default=True)
@click.option(
    "--scenarios",
    type=click.IntRange(len(SCENARIOS), len(SCENARIOS) + len(MORE)),
    default=len(SCENARIOS),
    show_default=True,
)
@click.option(
    "--testbeds", type=click.IntRange(1, len(TESTBEDS)), default=len(TESTBEDS), show_default=True
)
@click.option(
    "--nothing",
    type=click.Choice(list(NOTHING)),
    help="Plant no fault: a world with noise of this kind alone.",
)
@click.pass_context
def command(
    context: click.Context,
    out: Path | None,
    seed: int,
    nights: int,
    scenarios: int,
    testbeds: int,
    nothing: str | None,
) -> None:
    """Write a world of made-up nights to --out: records, and truth.json with what is planted."""
    if context.invoked_subcommand:
        return
    if out is None:
        raise click.UsageError("--out is missing: name the results folder to write")
    if out.exists() and any(out.iterdir()):
        raise click.UsageError(f"{out}: expected a new or empty folder, found files")
    wanted = (*SCENARIOS, *MORE)[:scenarios], [testbed.id for testbed in TESTBEDS[:testbeds]]
    if nothing:
        world = plan_nothing(seed, nights, NOTHING[nothing], *wanted)
    else:
        world = plan_world(seed, nights, *wanted)
    count = write_world(out, world)
    for fault in world.faults:
        click.echo(fault.line)
    click.echo(f"{count} records, {len(world.faults)} planted faults: {out}")


@command.command("score")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score_command(folder: Path, *, as_json: bool) -> None:
    """Say what the product tells of the world in FOLDER, night by night, beside what is planted."""
    found = score(folder)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
        return
    for answer in found.answers:
        click.echo(f"{answer.fault.kind}: {answer.line}")
        for short in answer.short:
            click.echo(f"    {short}")
    click.echo(found.line)


if __name__ == "__main__":
    sys.exit(command())
