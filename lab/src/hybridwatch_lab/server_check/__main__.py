"""``python -m hybridwatch_lab.server_check``: how far ``hybridwatch check`` can be trusted."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli.options import takes_results
from hybridwatch.cli.subjects import chosen, takes_build, takes_scenarios
from hybridwatch.cli.terminal import say
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import healthy_label, require_installed
from hybridwatch.errors import BuildError, HybridwatchError
from hybridwatch.records.store.files import append_entry, read_entries
from hybridwatch.scenarios.fixes import NO_FIX, start_fixes, variant_fixes
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import require_wanted, stoppable
from hybridwatch_lab.mutants.faulty_engine import FaultyEngine
from hybridwatch_lab.mutants.table import HEALTHY, catalogue, false_alarms, read_cells, table_files
from hybridwatch_lab.server_check.runner import CheckRunner
from hybridwatch_lab.server_check.table import (
    TAKEN_OUT,
    CheckCell,
    list_candidates,
    markdown,
    table_file,
)

_ENOUGH_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class _CheckJob:
    """What is to be checked in each scenario, and until when."""

    build: str
    healthy: int
    known_bad: bool
    mutants: bool
    only: tuple[str, ...]
    minutes: float
    results: Path
    deadline: float

    def cells(self) -> list[CheckCell]:
        """What the table of the build has."""
        return read_entries(self._file(), CheckCell)

    def keep(self, cell: CheckCell) -> None:
        """Write a cell down, and say it."""
        append_entry(self._file(), cell)
        named = ", ".join(cell.metrics) or cell.state.value
        say(f"{cell.scenario}: {cell.mutant}: {named} ({cell.seconds:.0f} s)", err=True)

    def _file(self) -> Path:
        return table_file(self.results, parse_label(self.build).engine_name)


@click.command("python -m hybridwatch_lab.server_check")
@takes_scenarios
@takes_build(default="cpu-0.32.0+v2")
@click.option("--healthy", type=int, default=0, help="Check each healthy engine so often.")
@click.option("--known-bad", is_flag=True, help="Check with each scenario's fix taken out.")
@click.option("--mutants", is_flag=True, help="Check with each mutant that changes answers.")
@click.option("--only", multiple=True, metavar="NAME", help="This mutant alone; repeatable.")
@click.option("--minutes", type=float, default=0.25, show_default=True, help="Of each check.")
@click.option("--limit-s", type=float, default=_ENOUGH_S, help="Begin no check after so long.")
@takes_results("Folder in which the table is kept.")
@click.pass_context
def command(
    context: click.Context,
    /,
    scenarios: tuple[str, ...],
    *,
    limit_s: float,
    **options: Any,
) -> None:
    """Check live engines, healthy and with faults switched on, and print what was named.

    What the table has is not measured again, so the same command goes on where it was stopped. A
    mutant that a scenario has named is not tried in another. Without --healthy, --known-bad and
    --mutants the table is printed as it is. The exit status is 1 after a false alarm.
    """
    job = _CheckJob(deadline=time.monotonic() + limit_s, **options)
    with stoppable():
        for scenario in chosen(scenarios or ("smoke",), (job.build,)):
            _check(job, scenario)
    cells = job.cells()
    click.echo(markdown(cells))
    context.exit(int(bool(false_alarms(cells))))


def _check(job: _CheckJob, scenario: Scenario) -> None:
    side = healthy_side(job.build, scenario)
    require_installed(side.spec)
    work = _list_work(job, scenario)
    if not work or time.monotonic() > job.deadline:
        return
    say(f"{scenario.id}: {len(work)} checks to make", err=True)
    for cell in _cells(job, scenario, side, work):
        job.keep(cell)


def healthy_side(build: str, scenario: Scenario) -> BuildRequest:
    """The build with all that mends its release: a check would name what that breaks."""
    spec = parse_label(build).spec
    mends = set(variant_fixes(spec.release, spec.accelerator, "patched")) - start_fixes()
    needed = sorted({*scenario.requires, *mends} - {scenario.fix})
    label = healthy_label(build, scenario.fix, needed)
    return parse_label(label)


_Work = Callable[[CheckRunner], CheckCell]


def _list_work(job: _CheckJob, scenario: Scenario) -> list[_Work]:
    """The checks that the table lacks."""
    cells = job.cells()
    here = [cell.mutant for cell in cells if cell.scenario == scenario.id]
    work: list[_Work] = [CheckRunner.check_healthy] * (job.healthy - here.count(HEALTHY))
    fix = scenario.fix
    can_switch = fix not in {NO_FIX, *start_fixes()}
    if job.known_bad and can_switch and f"{TAKEN_OUT}{fix}" not in here:
        work.append(lambda runner: runner.check_without(fix))
    if job.mutants:
        named = {cell.mutant for cell in cells if cell.metrics}
        work += [_with(name) for name in _wanted(job, scenario) if name not in {*named, *here}]
    return work


def _with(name: str) -> _Work:
    return lambda runner: runner.check_mutant(name, catalogue()[name])


def _wanted(job: _CheckJob, scenario: Scenario) -> Sequence[str]:
    """The mutants to try, by our own kill table of the build, else by those of all builds."""
    if job.only:
        return job.only
    files = table_files(job.results)
    own = [file for file in files if file.stem == parse_label(job.build).engine_name]
    known = [cell for file in own or files for cell in read_cells(file)]
    return list_candidates(known, scenario.id)


def _cells(
    job: _CheckJob, scenario: Scenario, side: BuildRequest, work: Sequence[_Work]
) -> Iterator[CheckCell]:
    with (
        tempfile.TemporaryDirectory(prefix="hybridwatch-") as folder,
        FaultyEngine(
            scenario, side, home() / "models", Path(folder), lambda text: say(text, err=True)
        ) as engine,
    ):
        engine.learn_tokens()
        runner = CheckRunner(engine, job.minutes)
        for one in work:
            require_wanted()
            if time.monotonic() > job.deadline:
                say("the time is over; the same command goes on", err=True)
                return
            try:
                yield one(runner)
            except BuildError as error:  # a mutant of code that this release has not
                say(f"{scenario.id}: {error}", err=True)


if __name__ == "__main__":
    try:
        command()
    except HybridwatchError as error:
        raise SystemExit(str(error)) from None
