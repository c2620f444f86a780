"""``hybridwatch releases``: the card that says whether one may upgrade."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from hybridwatch.analysis.report import report_alone
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.wording.cause_text import bounded, plain
from hybridwatch.cli.options import FILE, leave, takes_results, verb, verb_group, write_file
from hybridwatch.cli.subjects import takes_builds, takes_scenarios, with_counts
from hybridwatch.cli.terminal import Console, as_text, progress, say
from hybridwatch.engines.builds import BuildRequest, load_builds, parse_label
from hybridwatch.engines.check import require_installed
from hybridwatch.engines.fitting import find_model_runner, misfit
from hybridwatch.engines.install import InstallState as Installed
from hybridwatch.engines.install import state as state_of
from hybridwatch.errors import BuildError, EngineError, LateEngineError
from hybridwatch.measurement.session import run_session
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.measurement.testbed import harness_identity, make_ready
from hybridwatch.records.run import Phase
from hybridwatch.records.store.files import append_entry, read_entries
from hybridwatch.reports.releases import (
    RUNNERS,
    CellState,
    ReleaseCell,
    cells_file,
    read_card,
    render_card,
    render_cell,
)
from hybridwatch.scenarios.load import digest, find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.engine_log import find_root
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

_Place = tuple[Scenario, BuildRequest]


@verb_group("releases", "run smoke", "card")
def command() -> None:
    """Show what is clean, broken or missing in each release and model runner."""


@verb("run", "smoke --build cpu-0.32.0+v2", of=command)
@takes_scenarios
@takes_builds(
    "A release and its model runner; may be repeated.  [default: both runners of each CPU "
    "release that is installed, the newest first]"
)
@click.option("--trials", type=click.IntRange(1), default=1, show_default=True, help="Of a cell.")
@click.option("--limit", type=click.IntRange(0), help="Measure as many cells at the most.")
@click.option("--anew", is_flag=True, help="Measure again what the card has.")
@takes_results("Folder in which the card is kept.")
def run_command(
    scenarios: tuple[str, ...],
    labels: tuple[str, ...],
    trials: int,
    limit: int | None,
    results: Path,
    *,
    anew: bool,
) -> None:
    """Measure the contracts of each SCENARIO on each release and model runner, as released.

    Without a SCENARIO these are smoke, then curated. A cell is kept as soon as it is measured, and
    what is there is not measured again, so a call that was stopped goes on where it was.
    """
    console = Console()
    sides = [parse_label(one) for one in labels] or list(_installed(console))
    for side in sides:
        require_installed(side.spec)
    groups = [find(home() / "scenarios", [one]) for one in scenarios or ("smoke", "curated")]
    places = [
        (with_counts(one, contract=trials), side)
        for group in groups
        for side in sides
        for one in group
        if not one.is_of_speed_alone
    ]
    path = cells_file(results)
    missing = _missing(places, path, anew=anew)
    with stoppable():
        for number, place in enumerate(missing[:limit], start=1):
            where = f"[{number}/{len(missing)}] {place[0].id}: {place[1].label}"
            try:
                cell = _measured(place, console)
            except LateEngineError as error:
                # That says as much of a busy machine as of the engine.
                console.print(as_text(f"{where}: {error}; not kept"), soft_wrap=True)
                continue
            append_entry(path, cell)
            console.print(as_text(f"{where}: {render_cell(cell)}"), soft_wrap=True)


@verb("card", "--out docs/releases.md", of=command)
@click.option("--out", type=FILE, help="File to write; without it the card is printed.")
@takes_results("Folder in which the card is kept.")
def card_command(out: Path | None, results: Path) -> None:
    """Write the card: scenario by release and model runner, and why what is broken is broken.

    The exit status is 1 when something is broken and reasons.toml, next to the cells, does not say
    why.
    """
    card = read_card(results, find(home() / "scenarios", []))
    text = render_card(card)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text.encode())
    unexplained = list(card.unexplained())
    for cell, faults in unexplained:
        say(f"not explained: {' '.join(cell.key)}: {', '.join(faults)}", err=True)
    leave(bad_news=unexplained)


def _missing(places: Sequence[_Place], path: Path, *, anew: bool) -> list[_Place]:
    """Note where a scenario does not apply, and give the cells that have to be measured."""
    kept = {cell.key: cell for cell in read_entries(path, ReleaseCell)}
    missing = []
    for place in places:
        known, absent = kept.get(_cell(place, CellState.CLEAN).key), misfit(*place)
        if known is not None and known.scenario_digest != digest(place[0]):
            known = None
        if absent is None:
            if anew or known is None or known.state is CellState.ABSENT:
                missing.append(place)
        elif known is None or known.detail != absent:
            append_entry(path, _cell(place, CellState.ABSENT, detail=absent))
    return missing


def _installed(console: Console) -> Iterator[BuildRequest]:
    """Give both runners of every CPU release that is here, the newest first; name the others."""
    cpu = [one for one in load_builds().values() if one.accelerator == "cpu"]
    releases = [one for one in cpu if not one.variant_of and not one.origin]
    for spec in sorted(releases, key=lambda one: [*map(int, one.release.split("."))], reverse=True):
        if state_of(spec) is Installed.INSTALLED:
            yield from (parse_label(f"{spec.name}+{runner}") for runner in RUNNERS)
        else:
            console.print(as_text(f"left out: {spec.name} is not installed; run: {spec.made_by}"))


def _measured(place: _Place, console: Console) -> ReleaseCell:
    """Measure a cell; an engine that does not come up is an answer."""
    scenario, side = place
    try:
        make_ready(scenario, (side,), home() / "models")
        with progress(console) as tell:
            phases = {Phase.CONTRACT}
            run = run_session(SessionRequest(scenario, (side,), home() / "models", tell, phases))
    except LateEngineError:
        raise
    except EngineError as error:
        return _cell(place, CellState.FAILED, detail=_cause(str(error), error.log_tail))
    except BuildError as error:
        return _cell(place, CellState.FAILED, detail=bounded(str(error)))
    trials = scenario.trials.contract
    for trial in run.failed(0):
        if trial.failure is not None:
            cause = _cause(trial.failure.reason, trial.failure.log_tail)
            return _cell(place, CellState.FAILED, detail=cause, trials=trials)
    broken = {
        one.metric.id: one.contender.center if one.contender else None
        for one in report_alone(OneSide(run, 0)).bad_news
    }
    state = CellState.BROKEN if broken else CellState.CLEAN
    return _cell(place, state, broken=broken, trials=trials)


def _cause(reason: str, log: str) -> str:
    root = find_root(log)
    return bounded(plain(root) if root else reason)


def _cell(place: _Place, state: CellState, **facts: object) -> ReleaseCell:
    scenario, side = place
    return ReleaseCell.model_validate(
        {
            "scenario": scenario.id,
            "release": side.spec.release,
            "runner": find_model_runner(scenario, side),
            "scenario_digest": digest(scenario),
            "state": state,
            "measured_at": datetime.now(UTC),
            "revision": harness_identity().revision,
            **facts,
        }
    )
