"""``hybridwatch init`` and ``scenarios``: what there is to measure, of one's own and shipped."""

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click
from rich import box
from rich.padding import Padding

from hybridwatch.cli.options import FILE, FOLDER, print_json, program, takes_json, verb, write_file
from hybridwatch.cli.terminal import Console, as_text, say
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.engines.fitting import find_draft, find_folder
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.scenarios.load import Survey, digest, survey
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.workload_yaml import parse_scenarios
from hybridwatch.system.home import home_or_shipped, is_checkout_folder

_HIDDEN: Final = {"gitignore": ".gitignore"}
"""Files whose names would hide them from those who pack this package."""
_FIRST: Final = "mine/first"
_FIELDS: Final = ("id", "version", "fix", "fix_v2", "model", "accelerator", "since", "until")


@verb("init", "~/hybridwatch")
@click.argument("folder", metavar="DIR", type=FOLDER)
def init_command(folder: Path) -> None:
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
    """Write and return the files that a home starts with; none if one is there already."""
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


def carry_over(workload: Path, out: Path, *, as_json: bool) -> None:
    """Write a scenario for each load of a workload, and say what it does not carry over."""
    carried = parse_scenarios(workload)
    files = {out / f"{one.scenario.id}.toml": one.text.encode() for one in carried.files}
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content:
            raise ScenarioError(f"{path}: expected no other scenario of this name; remove it first")
    for path, content in files.items():
        write_file(path, content)
    if as_json:
        print_json({"written": [str(path) for path in files], "notes": list(carried.notes)})
        return
    say(*(f"{path}: written" for path in files))
    say(*(f"{workload}: {note}" for note in carried.notes))


@verb("scenarios", "", "--check", "--from workload.yaml --out scenarios")
@click.option("--check", is_flag=True, help="Only validate every file.")
@click.option("--all", "everything", is_flag=True, help="Also show the reason for each scenario.")
@takes_json("Print one JSON object.")
@click.option(
    "--root",
    type=FOLDER,
    help="Folder of scenario files.  [default: what is shipped, and scenarios/ of the home]",
)
@click.option(
    "--from",
    "workload",
    type=FILE,
    metavar="FILE",
    help="A workload of vLLM's perf-eval (YAML), to write as scenarios instead.",
)
@click.option("--out", type=FOLDER, help="Folder of scenario files that --from adds to.")
def scenarios_command(
    *,
    check: bool,
    everything: bool,
    as_json: bool,
    root: Path | None,
    workload: Path | None,
    out: Path | None,
) -> None:
    """List and validate every scenario file.

    The exit status is 2 if any file is wrong, or names a model that is not there; each is named.
    With --from every load of a workload becomes a scenario, and a line names each key that a
    scenario cannot say.
    """
    if (workload is None) != (out is None):
        raise click.UsageError("--from and --out belong together.")
    if workload is not None and out is not None:
        carry_over(workload, out, as_json=as_json)
        return
    home = home_or_shipped()
    found = _with_models(survey(root or home / "scenarios"), home / "models")
    if as_json:
        print_json(_to_json(found))
    elif check:
        good = len(found.scenarios)
        click.echo(f"{good} {'scenario is' if good == 1 else 'scenarios are'} valid.")
    else:
        _print(found.scenarios, reasons=everything)
    for problem in () if as_json else found.problems:
        say(f"ScenarioError: {problem}", err=True)
    if found.problems:
        raise click.exceptions.Exit(2)


def _with_models(found: Survey, models: Path) -> Survey:
    """Leave out scenarios whose models are not there; those of the hub are not looked up."""
    good, problems = [], list(found.problems)
    for scenario in found.scenarios:
        try:
            if not scenario.on_hub:
                find_folder(scenario, models)
            find_draft(scenario, models)
        except BuildError as error:
            problems.append(f"scenarios/{error}")
        else:
            good.append(scenario)
    return Survey(tuple(good), tuple(problems))


def _to_json(found: Survey) -> dict[str, object]:
    scenarios = [
        {name: getattr(one, name) for name in _FIELDS}
        | {"digest": digest(one), "summary": one.summary}
        for one in found.scenarios
    ]
    return {"scenarios": scenarios, "problems": list(found.problems)}


def _print(scenarios: tuple[Scenario, ...], *, reasons: bool) -> None:
    table = StackedTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("scenario", no_wrap=True)
    table.add_column("known-bad without", no_wrap=True)
    if not reasons:
        for scenario in scenarios:
            table.add_row(scenario.id, scenario.fix)
        Console().print(table)
        return
    for scenario in scenarios:
        other = f" (V2: {scenario.fix_v2})" if scenario.fix_v2 else ""
        bug = f"without {scenario.fix}{other}" if scenario.guarded else "no known bug"
        title = f"{scenario.id}, version {scenario.version}: {bug}"
        Console().print(title, style="bold", markup=False, highlight=False)
        Console().print(Padding(as_text(scenario.summary), (0, 0, 1, 2)))
