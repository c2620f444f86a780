"""``hybridwatch fuzz``: fuzzes an engine."""

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples
from hybridwatch.cli.subjects import chosen, takes_build
from hybridwatch.cli.terminal import say
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import equipped_label, require_installed
from hybridwatch.engines.fitting import find_checkpoint
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.records.run import near_tie_within
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.fuzz.case import compute_space, render
from hybridwatch_lab.fuzz.engine_target import EngineTarget, FuzzCounts, Judge, LiveTarget
from hybridwatch_lab.fuzz.oracle_worker import OracleWorker
from hybridwatch_lab.fuzz.search import FuzzFailure, FuzzSearch, failure_lines
from hybridwatch_lab.mutants.table import catalogue

_DEFAULT: Final = "fuzz/tiny-hybrid"
_MINUTE: Final = 60.0
_BETWEEN_S: Final = 10.0
"""A line of progress each time."""


@dataclass(frozen=True, slots=True)
class _FuzzJob:
    """What a call asks for: how long it looks, for what, and from which seed."""

    scenario: Scenario
    side: BuildRequest
    seed: int
    minutes: float
    cases: int | None
    mutant: str | None


@click.command(
    "fuzz",
    epilog=examples(
        "hybridwatch fuzz --minutes 10 --seed 1",
        "hybridwatch fuzz --minutes 5 --mutant mamba-row-not-moved",
    ),
)
@click.argument("scenario", default=_DEFAULT, shell_complete=completion.scenarios)
@takes_build("Whose engine plays the cases.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="After this time no case is begun.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--stories", "cases", type=click.IntRange(1), help="Stop after so many cases.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="the working directory",
    help="Folder that gets the scenario file of a failing case.",
)
@click.option("--mutant", metavar="NAME", help="Keep this planted fault on (lab/docs/mutants.md).")
@click.option("--as-released", is_flag=True, help="Do not put in the fixes that SCENARIO asks for.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@click.pass_context
def command(
    context: click.Context,
    /,
    scenario: str,
    build: str,
    out: Path,
    *,
    as_released: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Fuzz an engine: play random cases of requests until one fails.

    SCENARIO gives model and engine arguments. In a case requests of nasty lengths come at certain
    engine steps, share prefixes, are preempted and aborted; the token budget changes, the engine
    comes to rest and runs dummy batches. Every answer must be what transformers says, and no
    contract may break. A case that fails is made smaller and written as a scenario file; the exit
    status then is 1. The same seed gives the same cases.
    """
    wanted, mutant = _one(scenario, build), options["mutant"]
    label = build if as_released else equipped_label(build, wanted.needed_fixes)
    if mutant is not None and mutant not in catalogue():
        raise BuildError(f"--mutant: expected one of {', '.join(catalogue())}, found {mutant}")
    side = parse_label(label)
    require_installed(side.spec)
    begin = time.monotonic()
    with stoppable():
        make_ready(wanted, (side,), home() / "models")
        job = _FuzzJob(wanted, side, **options)
        failure, counts = _search(job, lambda line: say(line, err=True))
    seconds = time.monotonic() - begin
    path = None if failure is None else _keep(job, failure, out)
    if as_json:
        click.echo(json.dumps(_json(job, counts, seconds, failure, path), indent=2))
    else:
        say(*_lines(job, counts, seconds, failure, path))
    context.exit(int(failure is not None))


def _one(name: str, build: str) -> Scenario:
    found = chosen([name], [build])
    if len(found) != 1:
        raise ScenarioError(f"{name}: expected one scenario, found {len(found)}")
    engine = found[0].engine
    if engine.load_format is not None or engine.disaggregated or engine.data_parallel_size > 1:
        raise ScenarioError(f"{name}: expected one engine with weights that are not made up")
    return found[0]


def _search(job: _FuzzJob, tell: Callable[[str], None]) -> tuple[FuzzFailure | None, FuzzCounts]:
    models, scenario = home() / "models", job.scenario
    tell(f"{scenario.id} on {job.side.label}, seed {job.seed}, {job.minutes:g} minutes")
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hybridwatch-")))
        folder = find_checkpoint(scenario, job.side.spec, models).folder
        worker = stack.enter_context(OracleWorker(job.side.spec, folder, work / "oracle.log"))
        judge = Judge(worker, near_tie_within({scenario.engine.dtype}))
        engine_target = EngineTarget(scenario, job.side, models, work, tell, job.mutant)
        target = LiveTarget(stack.enter_context(engine_target), judge, _Progress(tell))
        limit_s = job.minutes * _MINUTE
        search = FuzzSearch(target, compute_space(scenario), limit_s, job.cases)
        return search.run(job.seed), target.counts


class _Progress:
    """Says now and then how far it is."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begin = self._last = time.monotonic()

    def __call__(self, counts: FuzzCounts) -> None:
        now = time.monotonic()
        if now - self._last >= _BETWEEN_S:
            self._last = now
            self._tell(f"{now - self._begin:.0f} s: {_counted(counts)}")


def _counted(counts: FuzzCounts) -> str:
    return ", ".join(f"{value} {name}" for name, value in asdict(counts).items())


def _keep(job: _FuzzJob, failure: FuzzFailure, out: Path) -> Path:
    """Write the scenario file of a failing case."""
    seed, mutant = job.seed, job.mutant
    on, mark = ("", "") if mutant is None else (f" with the mutant {mutant}", f"-{mutant}")
    what = f"A case that hybridwatch fuzz made up (seed {seed})"
    why = [f"{what} and that went wrong on {job.side.label}{on}.", *failure_lines(failure, seed)]
    path = out / f"fuzz-{seed}{mark}.toml"
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(render(job.scenario, failure.case, why), encoding="utf-8")
    return path


def _lines(
    job: _FuzzJob,
    counts: FuzzCounts,
    seconds: float,
    failure: FuzzFailure | None,
    path: Path | None,
) -> list[str]:
    summary = f"{_counted(counts)} in {seconds:.0f} s"
    if failure is None:
        return [f"nothing found: seed {job.seed}, {summary}"]
    return [*failure_lines(failure, job.seed), summary, f"scenario: {path}"]


def _json(
    job: _FuzzJob,
    counts: FuzzCounts,
    seconds: float,
    failure: FuzzFailure | None,
    path: Path | None,
) -> dict[str, object]:
    found = None
    if failure is not None:
        found = {
            "faults": list(failure.faults),
            "repeats": failure.repeats,
            "found_after_s": round(failure.found_after_s, 1),
            "shrunk_in_s": round(failure.shrunk_in_s, 1),
            "requests_at_first": len(failure.first.requests),
            "requests": len(failure.case.requests),
            "story": asdict(failure.case),
            "scenario": str(path),
        }
    return {
        "seed": job.seed,
        "build": job.side.label,
        "scenario": job.scenario.id,
        "mutant": job.mutant,
        **asdict(counts),
        "seconds": round(seconds, 1),
        "failure": found,
    }
