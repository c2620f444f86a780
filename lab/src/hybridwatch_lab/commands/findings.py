"""``hybridwatch findings``: a page of figures made of records alone."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from hybridwatch.analysis.control import ControlKind
from hybridwatch.cli.options import examples, takes_results, write_file
from hybridwatch.engines.builds import load_builds
from hybridwatch.records.store import read_run
from hybridwatch.scenarios.fixes import CATALOGUE, FIX_PARTS
from hybridwatch.scenarios.load import find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch_lab.gpu.campaign.studies import costs_in
from hybridwatch_lab.gpu.findings_analysis import (
    KeptFinding,
    Questions,
    WantedControl,
    WantedFinding,
    gather_evidence,
)
from hybridwatch_lab.gpu.findings_report import FindingSource, render_evidence

_GROUP: Final = "gpu"
_ACCELERATOR: Final = "cuda"
_LACKING: Final = "0.21.0"
"""A release that lacks most of the fixes."""
_HAVING: Final = "0.33.0"
"""The newest release; hybrid models run on model runner V2."""

_ENGINES: Final = tuple(
    WantedFinding(release, patched) for release in (_HAVING, _LACKING) for patched in (False, True)
)
_CONTROLS: Final = (
    WantedControl(_LACKING, ControlKind.KNOWN_BAD),
    WantedControl(_HAVING, ControlKind.KNOWN_BAD),
    WantedControl(_HAVING, ControlKind.A_A),
)
_PAGE: Final = "lab/docs/findings-gpu.md"
_OLD, _NEW = f"{_ACCELERATOR}-{_LACKING}", f"{_ACCELERATOR}-{_HAVING}"
_INSTALL: Final = (
    f"hybridwatch engine install {_OLD}",
    f"hybridwatch engine install {_NEW}",
)
_MEASURE: Final = (
    "hybridwatch gpu campaign --minutes 25",
    f"hybridwatch run {_GROUP} --build {_OLD} --build {_NEW}",
    f"hybridwatch run {_GROUP} --build {_OLD} --known-bad",
    f"hybridwatch run {_GROUP} --build {_NEW} --known-bad",
    f"hybridwatch run {_GROUP} --build {_NEW}-patched --build {_NEW}-patched",
)


@click.command(
    "findings",
    epilog=examples(
        "hybridwatch findings --results results/gpu --out lab/docs/findings-gpu.md",
    ),
)
@takes_results("Folder whose records are used.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; without it the page is printed.",
)
def command(results: Path, out: Path | None) -> None:
    """Write the page of figures measured on GPUs, each with its record.

    The page has accuracy, tokens per second, host syncs per step and step time of every scenario
    of the group gpu on vLLM 0.21.0 and 0.33.0, as released and with the scenario's fix. It says
    whether the known-bad control was caught and the A/A control is clean. A figure without a record
    is called owed. The page also has the costs that the studies of `hybridwatch gpu campaign`
    measured.
    """
    scenarios = find(home() / "scenarios", [_GROUP])
    out_of_reach = {one.id: tuple(_out_of_reach(one)) for one in scenarios}
    questions = Questions(_ENGINES, _CONTROLS, _ACCELERATOR, out_of_reach)
    shown = _shown(results)
    found = gather_evidence(scenarios, tuple(_kept(results)), questions)
    costs = [one for one in costs_in(results) if one.device != "cpu"]
    page = render_evidence(
        "Findings: figures measured on GPUs",
        FindingSource(
            shown,
            f"hybridwatch findings --results {shown} --out {_PAGE}",
            (*_INSTALL, *(f"{command} --results {shown}" for command in _MEASURE)),
        ),
        found,
        costs,
    )
    if out is None:
        click.echo(page, nl=False)
        return
    write_file(out, page.encode(), reported=True)


def _out_of_reach(scenario: Scenario) -> Iterator[str]:
    """Releases that lack the scenario's fix, and whose patched build does not put it in."""
    builds = load_builds()
    for release in (_LACKING, _HAVING):
        lacking = {name for name, fix in CATALOGUE.items() if fix.releases[release] == "lacking"}
        switched = builds[f"{_ACCELERATOR}-{release}-patched"].switches
        put_in = _parts(fix for fix, wanted in switched.items() if wanted)
        if _parts(scenario.needed_fixes) & (lacking - put_in):
            yield release


def _parts(fixes: Iterable[str]) -> set[str]:
    return {part for fix in fixes for part in FIX_PARTS.get(fix, (fix,))}


def _shown(results: Path) -> str:
    """A results folder as a page names it: within the home, from there on."""
    folder, root = results.resolve(), home().resolve()
    return (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()


def _kept(results: Path) -> Iterator[KeptFinding]:
    """Runs of the group; other records are not opened."""
    from hybridwatch.database.heads import paths_in_group  # only now: it takes a second to load

    for path in paths_in_group(results, _GROUP):
        yield KeptFinding(path.relative_to(results).as_posix(), read_run(path))
