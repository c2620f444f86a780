"""``hybridwatch scenarios``: which scenarios there are, and whether their files are right.

``--from`` makes scenario files of another project's workloads.
"""

from pathlib import Path

import click
from rich import box
from rich.padding import Padding

from hybridwatch.cli.options import examples, print_json, write_file
from hybridwatch.cli.terminal import Console
from hybridwatch.engines.fitting import find_draft, find_folder
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.scenarios.load import Survey, digest, survey
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.scenarios.workload_yaml import parse_scenarios
from hybridwatch.system.console_text import as_text, say
from hybridwatch.system.home import home_or_shipped

_WRONG = 2  # exit status: a file says something we do not understand


def carry_over(workload: Path, out: Path, *, as_json: bool) -> None:
    """Write a scenario for each load of a workload, and say what it does not carry over.

    Raises:
        ScenarioError: The file is no workload, or there is another scenario where one belongs.
    """
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


@click.command(
    "scenarios",
    epilog=examples(
        "hybridwatch scenarios",
        "hybridwatch scenarios --check",
        "hybridwatch scenarios --from workload.yaml --out scenarios",
    ),
)
@click.option("--check", is_flag=True, help="Only validate every file.")
@click.option("--all", "everything", is_flag=True, help="Also show the reason for each scenario.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of scenario files.  [default: what is shipped, and scenarios/ of the home]",
)
@click.option(
    "--from",
    "workload",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A workload of vLLM's perf-eval (YAML), to write as scenarios instead.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of scenario files that --from adds to.",
)
def command(
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
        _print_check(found)
    else:
        _print(found.scenarios, reasons=everything)
        _print_problems(found)
    if found.problems:
        raise click.exceptions.Exit(_WRONG)


def _with_models(found: Survey, models: Path) -> Survey:
    """Leave out scenarios whose models are not there; nobody asks the hub for those that it has."""
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
        {
            "id": scenario.id,
            "version": scenario.version,
            "fix": scenario.fix,
            "fix_v2": scenario.fix_v2,
            "model": scenario.model,
            "accelerator": scenario.accelerator,
            "since": scenario.since,
            "until": scenario.until,
            "digest": digest(scenario),
            "summary": scenario.summary,
        }
        for scenario in found.scenarios
    ]
    return {"scenarios": scenarios, "problems": list(found.problems)}


def _print_check(found: Survey) -> None:
    good = len(found.scenarios)
    click.echo(f"{good} {'scenario is' if good == 1 else 'scenarios are'} valid.")
    _print_problems(found)


def _print_problems(found: Survey) -> None:
    for problem in found.problems:
        say(f"ScenarioError: {problem}", err=True)


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
