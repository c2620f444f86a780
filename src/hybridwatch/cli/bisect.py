"""``hybridwatch bisect``: which release, commit, file or fix changed what a scenario measures?"""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import (
    FOLDER,
    leave,
    program,
    takes_json,
    takes_results,
    verb,
    with_results,
)
from hybridwatch.cli.outcome import judged
from hybridwatch.cli.subjects import takes_base
from hybridwatch.cli.terminal import Console, as_text, progress
from hybridwatch.errors import FleetError, ScenarioError
from hybridwatch.measurement.session_request import ProgressCallback
from hybridwatch.measurement.testbed import probe_testbed
from hybridwatch.orchestration.bisect.bisector import Bisector, BisectResult
from hybridwatch.orchestration.bisect.candidates import BuildFactory, Ends, find_ends
from hybridwatch.orchestration.bisect.journal import SearchJournal, sole_journal
from hybridwatch.orchestration.bisect.measurer import Measurer
from hybridwatch.orchestration.bisect.question import STARTS, ChangeDirection, require_metric
from hybridwatch.orchestration.bisect.search import BisectSearch, SearchGoal
from hybridwatch.orchestration.bisect.words import result_lines, to_json
from hybridwatch.orchestration.fleet.job_queue import made_queue
from hybridwatch.orchestration.fleet.matrix import MATRIX_FILE, read_confirm
from hybridwatch.orchestration.fleet.search import (
    FleetBuildFactory,
    FleetMeasurer,
    FleetSearch,
)
from hybridwatch.records.file_parts import RECORD_SUFFIX, build_stem
from hybridwatch.records.run import Run
from hybridwatch.records.store import check_writable, write_run
from hybridwatch.records.store.layout import find_folder
from hybridwatch.scenarios.load import digest, find
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable

_MAX_MINUTES: Final = 120.0
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """What the command line asks for, as written."""

    good: str
    bad: str
    metric: str
    max_minutes: float
    repo: Path | None
    base: str
    find: ChangeDirection = ChangeDirection.REGRESSION
    install: bool = False
    anew: bool = False
    fleet: str = ""


@verb(
    "bisect",
    "smoke/padded-graph-rows --good 0.27.1 --bad 0.32.0",
    "reported/i39273-draftless-step --bad 0.27.1 --good 0.32.0 --find fix",
    "smoke/padded-graph-rows --good v0.27.1 --bad main --repo ~/vllm",
    "smoke/padded-graph-rows --good 0.27.1 --bad 0.32.0 --fleet epyc",
)
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option(
    "--good", required=True, metavar="END", help="The good end: a build, release or commit."
)
@click.option(
    "--bad", required=True, metavar="END", help="The bad end: a build, release or commit."
)
@click.option(
    "--metric",
    default="",
    metavar="METRIC",
    help="What changed: the id of a metric; starts for whether the engine comes up, alive for "
    "whether it lives.  "
    "[default: whatever differs between the ends]",
)
@click.option(
    "--find",
    type=click.Choice([wanted.value for wanted in ChangeDirection]),
    default=ChangeDirection.REGRESSION.value,
    show_default=True,
    help="Whether something got worse, or better; of a fix the bad end is the earlier one.",
)
@click.option(
    "--repo",
    metavar="FOLDER",
    type=FOLDER,
    help="A clone of vLLM, whose commits are searched; it is only read.",
)
@takes_base("The release that commits are laid over.  [default: the nearest installed one]")
@click.option("--install", is_flag=True, help="Install releases that are needed and not there.")
@click.option(
    "--max-minutes",
    type=click.FloatRange(0, min_open=True),
    default=_MAX_MINUTES,
    show_default=True,
    help="After which no other measurement begins.",
)
@click.option("--anew", is_flag=True, help="Discard saved progress.")
@click.option(
    "--fleet",
    default="",
    metavar="TESTBED",
    help="Measure on hosts of this testbed of the home's fleet.toml: through the queue, by what "
    "drains it.",
)
@takes_json("Print one JSON object at the end.")
@takes_results("Folder that gets the record, and keeps what was measured.")
def command(scenario: str, results: Path, *, as_json: bool, find: str, **chosen: Any) -> None:
    """Find what changed what SCENARIO measures.

    Both ends are measured first; if they do not differ, that is the answer. Then releases are
    halved, or commits of a clone. The pair that is left is measured again, then the files in which
    it differs, and with fixes switched. Run the same command to resume a call that was stopped.
    The exit status is 0 when one change was found and confirmed, else 1.
    """
    options = BisectOptions(find=ChangeDirection(find), **chosen)
    if options.fleet:
        _require_askable(options)
    console = Console(stderr=as_json)

    def say(text: str) -> None:
        console.print(as_text(text), soft_wrap=True)

    with stoppable(), progress(console) as on_progress:
        document = search(scenario, options, results, say, on_progress)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    leave(bad_news=not document["confirmed"])


def search(
    scenario: str,
    options: BisectOptions,
    results: Path,
    say: Callable[[str], None],
    on_progress: ProgressCallback = lambda _: None,
    store: Path | None = None,
) -> dict[str, Any]:
    """Search, say what came of it, and give it as ``docs/json.md`` has it.

    ``store`` gets the record of the pair measured again; it is ``results`` by itself.
    """
    if options.metric:
        require_metric(options.metric)
    check_writable(results)
    subject = _one(scenario)
    accelerator = subject.accelerator or "cpu"
    ends = find_ends(options.good, options.bad, options.find, options.repo, accelerator, home())
    question = _question(subject, options, ends)
    with sole_journal(results, subject.id, question, discard=options.anew) as journal:
        if journal.kept:
            say(f"resuming with {journal.kept} measurements of {journal.path}")
        measurer, factory = _backends(subject, options, journal, results, on_progress, say)
        looked_for = SearchGoal(options.find, options.metric, tuple(subject.expect.exactly))
        step = BisectSearch(looked_for, measurer, journal, say, options.max_minutes * _MINUTE)
        bisector = Bisector(ends, factory, step, partial(_keep, subject, store or results), say)
        found = _run_bisector(bisector)
        if isinstance(measurer, FleetMeasurer):
            measurer.search.drop()
    repeat = _repeat(subject, options, found, results)
    for line in result_lines(found, repeat):
        say(line)
    say(f"{journal.fresh} measurements in {step.minutes:.0f} min, kept in {journal.path}")
    return to_json(subject.id, found, repeat, step.minutes)


def _one(named: str) -> Scenario:
    found = find(home() / "scenarios", (named,))
    if len(found) != 1:
        raise ScenarioError(f"{named}: expected one scenario, found a group of {len(found)}")
    return found[0]


def _question(scenario: Scenario, options: BisectOptions, ends: Ends) -> dict[str, str]:
    """All that makes two searches the same, so that one resumes the other."""
    return {
        "scenario": scenario.id,
        "digest": digest(scenario),
        "ends": ends.key,
        "metric": options.metric,
        "find": options.find.value,
        "base": options.base,
        "testbed": f"fleet {options.fleet}" if options.fleet else probe_testbed(()).id,
    }


def _backends(
    scenario: Scenario,
    options: BisectOptions,
    journal: SearchJournal,
    results: Path,
    on_progress: ProgressCallback,
    say: Callable[[str], None],
) -> tuple[Measurer, BuildFactory]:
    """Give what measures and what makes builds: of this machine, or of a fleet."""
    models, made = home() / "models", (home(), options.repo, options.base, options.install, say)
    if not options.fleet:
        return Measurer(scenario, models, on_progress), BuildFactory(*made, search=journal.digits)
    fleet_search = _open_fleet_search(options, results, journal, say)
    return FleetMeasurer(scenario, models, on_progress, fleet_search), FleetBuildFactory(
        *made, commits=fleet_search.commits
    )


def _keep(scenario: Scenario, results: Path, run: Run) -> Path:
    # A fleet's queue remembers the confirmation of a search that is repeated.
    there = find_folder(results, run) / (build_stem(run) + RECORD_SUFFIX)
    if there.exists():
        return there
    return judged(scenario, run, write_run(results, run), results).path


def _run_bisector(bisector: Bisector) -> BisectResult:
    """Search, and leave no build behind but those that the answer names."""
    named: tuple[str, ...] = ()
    try:
        found = bisector.run()
        if found.is_confirmed:
            named = tuple(one.make() for one in found.answer.pair)
        return found
    finally:
        bisector.factory.clear(named)


def _repeat(scenario: Scenario, options: BisectOptions, found: BisectResult, results: Path) -> str:
    """Write the command that measures the answer again."""
    first, last = (one.key for one in found.answer.pair)
    is_fix = options.find is ChangeDirection.FIX
    good, bad = (last, first) if is_fix else (first, last)
    words = [program(), "bisect", scenario.id, "--good", good, "--bad", bad, "--anew"]
    for name, value in (
        ("--metric", found.answer.question.metric if found.answer.question else ""),
        ("--find", options.find.value if is_fix else ""),
        ("--repo", str(options.repo) if found.answer.candidates.name == "commits" else ""),
        ("--base", options.base),
        ("--fleet", options.fleet),
    ):
        words += [name, shlex.quote(value)] if value else []
    return " ".join(words) + with_results(results)


def _require_askable(options: BisectOptions) -> None:
    """Refuse what is no use together with ``--fleet``."""
    if options.metric == STARTS:
        raise click.UsageError(
            f"--metric {STARTS}: not with --fleet, where an engine that does not come up leaves no "
            "record."
        )
    if options.install:
        raise click.UsageError("--install: not with --fleet, whose hosts install what is needed.")
    if options.repo is not None and not options.base:
        raise click.UsageError("--repo with --fleet: needs --base, a build that every host has.")


def _open_fleet_search(
    options: BisectOptions, results: Path, journal: SearchJournal, say: Callable[[str], None]
) -> FleetSearch:
    """Open the queue for a search on hosts of a testbed; after the minutes no probe begins."""
    matrix, confirm = read_confirm(home() / MATRIX_FILE)
    kinds = {one.name: one for one in matrix.testbeds}
    if options.fleet not in kinds:
        names = ", ".join(kinds)
        raise FleetError(f"--fleet {options.fleet}: expected a testbed of {matrix.path}: {names}")
    job_queue = made_queue(results)
    return FleetSearch(
        job_queue=job_queue,
        results=results,
        testbed=kinds[options.fleet],
        per_day=confirm.per_day,
        batch_id=f"bisect {journal.name()}",
        until=job_queue.clock() + timedelta(minutes=options.max_minutes),
        read=journal.runs(),
        say=say,
        clone=str(options.repo.resolve()) if options.repo else "",
        base=options.base,
    )
