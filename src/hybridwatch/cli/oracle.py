"""``hybridwatch oracle``: right answers from outside the engine, written down and checked."""

import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from hybridwatch.cli import completion
from hybridwatch.cli.options import leave, print_json, takes_json, verb, verb_group
from hybridwatch.cli.subjects import chosen, takes_build, takes_scenarios
from hybridwatch.engines.builds import BuildRequest, parse_label
from hybridwatch.engines.check import equipped_label
from hybridwatch.engines.fitting import model_folder
from hybridwatch.errors import ScenarioError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext
from hybridwatch.measurement.right_answers import (
    Oracle,
    WrongAnswer,
    build_oracle,
    by_engine,
    by_transformers,
    find_deviations,
    find_own_path,
    find_path,
    load,
    model_digest,
    wrong_answers,
)
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home, layers
from hybridwatch.system.stopping import stoppable

_BY: Final = ("transformers", "engine")


@verb_group("oracle", "check smoke/padded-graph-rows")
def command() -> None:
    """Store and check right answers that come from outside the engine.

    With them a contract trial counts contract.wrong_answers.
    """


_takes_build = takes_build("Build whose environment has transformers, or whose engine is trusted.")


@verb(
    "make",
    "tiny-hybrid smoke/padded-graph-rows",
    "tiny-hybrid smoke/dummy-run --by engine --build cpu-0.27.1",
    of=command,
)
@click.argument("model")
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option("--by", type=click.Choice(_BY), default=_BY[0], show_default=True)
@_takes_build
@click.option("--trials", type=click.IntRange(1, 1000), help="Contract trials to answer.")
def make_command(model: str, scenario: str, by: str, build: str, trials: int | None) -> None:
    """Write the right answers to SCENARIO by MODEL, a folder or the name of one in models/.

    transformers computes in float32 on the processor, without any cache. An engine answers with
    the scenario's fix in, without graphs and drafts: use a build that you trust. The file is
    oracles/SCENARIO.json; one that is there is replaced.
    """
    wanted = _one(scenario, build)
    if model != wanted.model and not Path(model).is_dir():
        raise ScenarioError(f"{wanted.id}: model: expected {wanted.model}, found {model}")
    folder = _folder(wanted, model)
    request, count = parse_label(build), trials or wanted.trials.contract
    if by == "transformers":
        made = by_transformers(wanted, folder, request, count)
    else:
        made = by_engine(wanted, folder.parent, request, count)
    words = ["hybridwatch", "oracle", "make", wanted.model, wanted.id, "--by", by, "--build", build]
    line = shlex.join([*words, "--trials", str(count)])
    path = find_own_path(home(), wanted.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(build_oracle(wanted, folder, line, made).render(), encoding="utf-8")
    click.echo(f"{path}: {sum(map(len, made[1]))} requests in {count} trials, by {by}")


@verb("check", "smoke/padded-graph-rows", of=command)
@takes_scenarios
@_takes_build
def check_command(scenarios: tuple[str, ...], build: str) -> None:
    """Compute right answers again by transformers, and compare them with those kept.

    Without SCENARIO, of all that have some. Near ties may fall otherwise. The exit status is 1 if
    anything else differs.
    """
    differing = False
    for scenario, kept in _answered(scenarios, build):
        lines = list(_deviations(scenario, kept, build))
        differing = differing or bool(lines)
        same = f"{sum(map(len, kept.trials))} requests, as computed again"
        click.echo(f"{scenario.id}: {same if not lines else chr(10).join(['differs', *lines])}")
    leave(bad_news=differing)


@verb("ask", "smoke --build cpu-0.27.1", "smoke/dummy-run --build cpu-0.32.0 --json", of=command)
@takes_scenarios
@takes_build("The build whose engine answers, as it is.")
@takes_json("Print one JSON object at the end.")
def ask_command(scenarios: tuple[str, ...], build: str, *, as_json: bool) -> None:
    """Ask an engine the requests of SCENARIO, and name those that it answers wrongly.

    Without SCENARIO, of all that have right answers and that the build can run. Graphs and drafts
    are on as the scenario has them; no probe is, and nothing is stored. A release that lacks a fix
    answers without it. The exit status is 1 if any answer is wrong.
    """
    asked = _answered(scenarios, build)
    found: dict[str, list[WrongAnswer]] = {}
    with stoppable():
        for scenario, kept in asked:
            request = parse_label(equipped_label(build, scenario.requires))
            make_ready(scenario, (request,), home() / "models")
            wrong = found[scenario.id] = _wrong(scenario, request, kept)
            verdict = f"{len(wrong)} of {sum(map(len, kept.trials))} requests answered wrongly"
            click.echo("\n  ".join([f"{scenario.id}: {verdict}", *map(str, wrong)]), err=as_json)
    if as_json:
        named = {name: [one._asdict() for one in wrong] for name, wrong in found.items()}
        print_json({"build": build, "wrong": named})
    leave(bad_news=any(found.values()))


def _wrong(scenario: Scenario, build: BuildRequest, kept: Oracle) -> list[WrongAnswer]:
    with (
        tempfile.TemporaryDirectory(prefix="hybridwatch-") as work,
        EnginePool(scenario, [build], home() / "models", Path(work), lambda _: None) as pool,
    ):
        return list(wrong_answers(TrialContext(pool, 0, Path(work)), home(), kept.trials))


def _deviations(scenario: Scenario, kept: Oracle, build: str) -> Iterator[str]:
    folder = _folder(scenario, kept.model)
    digest = model_digest(folder)
    if digest != kept.model_digest:
        yield f"model_digest: expected {kept.model_digest}, found {digest}"
    _, fresh = by_transformers(scenario, folder, parse_label(build), len(kept.trials), kept.trials)
    yield from find_deviations(kept.trials, fresh)


def _answered(named: tuple[str, ...], build: str) -> list[tuple[Scenario, Oracle]]:
    """Give the scenarios that have right answers, with these."""
    found = [(one, kept) for one in chosen(named, [build]) if (kept := _kept(one, named))]
    if not found:
        raise ScenarioError("no scenario has right answers yet; see: hybridwatch oracle make")
    return found


def _one(scenario: str, build: str) -> Scenario:
    found = chosen([scenario], [build])
    if len(found) != 1:
        raise ScenarioError(f"{scenario}: expected one scenario, found {len(found)}")
    return found[0]


def _kept(scenario: Scenario, named: tuple[str, ...]) -> Oracle | None:
    path = find_path(home(), scenario.answered_by)
    kept = load(path)
    if kept is None and scenario.id in named:
        raise ScenarioError(
            f"{path}: not there; run: hybridwatch oracle make {scenario.model} {scenario.id}"
        )
    return kept


def _folder(scenario: Scenario, model: str) -> Path:
    ours = any((models / model).is_dir() for models in layers(home() / "models"))
    folder = model_folder(scenario, model, home() / "models") if ours else Path(model)
    if not (folder / "config.json").is_file():
        raise ScenarioError(f"{model}: expected a folder with a config.json, or one in models/")
    return folder
