"""The smoke scenarios with their known-bad controls, as a user runs, judges and comments them.

One run with real engines, one start a scenario; everything else is read from its records.
"""

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.cli.subjects import chosen, with_known_bad
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.metrics import WRONG_TOKENS
from hybridwatch.records.run import Phase, Run, Trial
from hybridwatch.records.store import list_records, list_verdicts, read_run
from hybridwatch.scenarios.fixes import CATALOGUE
from tests.engine.conftest import HEALTHY, KNOWN_BAD

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PADDED = "smoke/padded-graph-rows"
WITH_CONTROL, _ = with_known_bad(chosen(["smoke"], [DEFAULT_BUILD]))
SCENARIOS = {one.id: one for one in WITH_CONTROL}
SHOWN = f"{len(SCENARIOS)} of {len(SCENARIOS)} bugs caught, the healthy engine clean."


@dataclass(frozen=True)
class Results:
    """A results folder, and the command on it."""

    folder: Path
    output: str = ""

    def call(self, *words: str | Path, status: int = 0) -> str:
        """Run a command on these results; gives what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "hybridwatch", *words, "--results", self.folder],
            cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def record(self, scenario: str) -> Path:
        """The record of a scenario."""
        (record,) = (
            one for one in list_records(self.folder) if read_run(one).scenario.id == scenario
        )
        return record

    def run(self, scenario: str) -> Run:
        """The run of a scenario."""
        return read_run(self.record(scenario))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results with the run."""
    made = Results(tmp_path_factory.mktemp("results"))
    # Nearly every answer of the first scenario is lost: twenty show it as surely as hundreds.
    words = ("run", PADDED, "smoke", "--known-bad", "--documents", "20")
    return Results(made.folder, made.call(*words))


@pytest.fixture(scope="module")
def report(results: Results) -> dict[str, Any]:
    """What ``compare`` says of the first scenario."""
    said = results.call("compare", results.record(PADDED), "--json", status=1)
    report: dict[str, Any] = json.loads(said)
    return report


def contracts(run: Run) -> list[Trial]:
    """The contract trials of both sides, in the order in which they were made."""
    trials = [one for one in run.trials if one.phase is Phase.CONTRACT]
    assert all(one.failure is None and one.unsupported == {} for one in trials)
    assert {one.side for one in trials} == {HEALTHY, KNOWN_BAD}
    return trials


def counts(trials: list[Trial], side: int) -> dict[str, float]:
    """The most of each contract's counts that a trial of a side has."""
    found: dict[str, float] = {}
    for trial in trials:
        for sample in trial.samples if trial.side == side else ():
            if sample.metric.startswith("contract."):
                found[sample.metric] = max(found.get(sample.metric, 0.0), *sample.values)
    return found


@pytest.mark.long("six engines, one a scenario: all that a user's first run goes through")
def test_every_bug_is_caught_and_the_output_names_the_next_commands(results):
    assert SHOWN in results.output
    assert "hybridwatch gate" in results.output
    assert {read_run(one).scenario.id for one in list_records(results.folder)} == set(SCENARIOS)


@pytest.mark.parametrize("scenario_id", SCENARIOS)
def test_known_bad_is_distinguished_from_healthy(results, scenario_id):
    scenario, trials = SCENARIOS[scenario_id], contracts(results.run(scenario_id))
    healthy, broken = counts(trials, HEALTHY), counts(trials, KNOWN_BAD)
    assert set(healthy.values()) == {0.0}
    assert broken[CATALOGUE[scenario.fix].breaks] > 0
    assert (broken[WRONG_TOKENS] > 0) == (scenario.harm == "answers")


def test_accuracy_tells_too(report):
    found = {f"{one['metric']} {one['statistic']}": one["verdict"] for one in report["comparisons"]}
    assert found["contract.slots_off_block_table value"] == "regression"
    assert found["contract.wrong_tokens value"] == "regression"
    # Of twenty documents each. How many are lost hangs on who shares a step: where these are too
    # few to tell from luck, fewer are right than the scenario expects.
    assert found["accuracy.word_problems mean"] in {"regression", "broken"}
    assert {"output_throughput median", "host_syncs_per_step mean"} <= set(found)
    named = {one["metric"]: one for one in report["comparisons"]}
    contract = named["contract.slots_off_block_table"]
    assert contract["baseline"]["center"] == 0
    assert contract["contender"]["center"] > 0


def test_record_does_not_tell_where_the_checkout_lies(results):
    record = results.record(PADDED)
    bulk = gzip.decompress(next(record.parent.glob(f"{record.stem}.bulk.*")).read_bytes())
    assert str(ROOT).encode() not in record.read_bytes() + bulk


def test_gate_and_comment_say_so(results):
    caught = "1 of 1 bug caught, the healthy engine clean"
    record = results.record(PADDED)
    assert caught in results.call("gate", record)
    comment = results.call("comment", "--dry-run", record)
    assert comment.startswith(f"**{caught}.**")
    assert "accuracy.word_problems" in comment
    assert "<details>" in comment


def test_the_verdict_is_had_again_from_the_record(results):
    (verdict,) = (
        one for one in list_verdicts(results.folder) if results.run(PADDED).id in one.name
    )
    said = results.call("explain", verdict)
    assert "the same, bit for bit" in " ".join(said.split())
