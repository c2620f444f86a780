"""Whole nights through ``ci/nightly.sh``, with real asv in an existing environment.

Two hold a build against itself, one of them with an engine that is pretended: ``make test`` sees
what a night leaves, and ``make test-all`` what it measures. A third has a planted fault
(``+slow-step``).
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from hybridwatch.analysis.machine_state import BLOCKS
from hybridwatch.records.run import Run
from hybridwatch.records.store import list_records, list_verdicts, read_run
from tests.e2e.short_home import make_home_of_a_short_night

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("a whole night by real asv, a process for each benchmark"),
    pytest.mark.timeout(1800),
]
PRETENDED = "smoke/padded-graph-rows"
"""Of the scenarios, the one whose engine ``pretended_engine`` pretends to be."""

ROOT = Path(__file__).parents[2]
SCENARIO = "smoke/dummy-run"
BUILD = "cpu-0.27.1"
SLOWED = f"{BUILD}+slow-step"
TRIALS = 7
"""As few as a scenario may have."""


@dataclass(frozen=True)
class Night:
    """A night that was held."""

    place: Path
    done: subprocess.CompletedProcess[str]
    scenario: str = SCENARIO

    @property
    def folder(self) -> Path:
        nights = (self.place / "results" / "nights").iterdir()
        (night,) = (path for path in nights if path.is_dir())
        return night

    @property
    def gate(self):
        return json.loads((self.folder / "gate.json").read_text())

    @property
    def sentence(self) -> str:
        return (self.folder / "report.md").read_text().splitlines()[0]

    @property
    def record(self) -> Path:
        (record,) = list_records(self.place / "results")
        return record

    @property
    def run(self) -> Run:
        return read_run(self.record)

    def benchmark(self, name: str) -> str:
        """How asv names a benchmark of the scenario."""
        group, _, scenario = self.scenario.replace("-", "_").partition("/")
        class_name = scenario.replace("_", " ").title().replace(" ", "")
        return f"{group}.{scenario}.{class_name}.track_{name}"

    def comment(self) -> subprocess.CompletedProcess[str]:
        """What the bot would write about the record of this night."""
        words = ("-m", "hybridwatch", "comment", "--dry-run", self.record)
        return subprocess.run(
            [sys.executable, *map(str, words), "--results", str(self.place / "results")],
            cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip


def made(folder, repository=ROOT):
    """Folders of its own for results and site; the suites are the real ones."""
    config = {
        "version": 1,
        "project": "night",
        "repo": str(repository),
        "branches": ["HEAD"],
        "environment_type": "existing",
        "plugins": [".hybridwatch.orchestration.nightly.asv_plugin"],
        "benchmark_dir": str(ROOT / "benchmarks"),
        "results_dir": str(folder / "asv"),
        "html_dir": str(folder / "html"),
    }
    (folder / "asv.conf.json").write_text(json.dumps(config))
    return folder


def hold(place, build, home=ROOT, scenario=SCENARIO):
    return subprocess.run(
        ["bash", "ci/nightly.sh", scenario, "--results", str(place / "results"), "--asv-config",
         str(place / "asv.conf.json"), "--policy", "ci/gate.toml"],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
        # The environments are there, or we were not: nothing may be made again under this process.
        env={**os.environ, "MAKE": "true", "BUILD": build, "BASELINE": BUILD,
             "HYBRIDWATCH_HOME": str(home)},
    )  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(PRETENDED, id="pretended"),
        pytest.param(SCENARIO, id="real", marks=pytest.mark.slow),
    ],
)
def same(request, tmp_path_factory):
    """An A/A night, a short one: what it finds out matters less than what it leaves."""
    place, scenario = tmp_path_factory.mktemp("same"), request.param
    pretended = scenario == PRETENDED
    home = make_home_of_a_short_night(place / "home", scenario, trials=TRIALS, pretended=pretended)
    return Night(place, hold(made(place, home), BUILD, home, scenario), scenario)


@pytest.fixture(scope="module")
def slowed(tmp_path_factory):
    """A night with a build whose steps last a quarter longer, in turn with the plain one."""
    place = made(tmp_path_factory.mktemp("slowed"))
    return Night(place, hold(place, SLOWED))


def test_a_night_ends_with_records_a_site_a_gate_and_a_report(same):
    log = (same.folder / "log.txt").read_text()
    assert f"[1/1] {same.scenario}: measured" in same.done.stdout, same.done.stderr + log
    run = same.run
    assert [build.label for build in run.builds] == [BUILD] * 2
    assert not [*run.failed(0), *run.failed(1)]
    assert len(list_verdicts(same.place / "results")) == 1
    # Whether an A/A night is green is a matter of statistics; that the status says it is not.
    assert same.done.returncode == int(not same.gate["passed"]), same.done.stdout
    assert same.scenario in (same.folder / "report.md").read_text()
    assert (same.place / "html" / "index.html").is_file()
    graphs = same.place / "html" / "graphs" / "summary"
    assert (graphs / f"{same.benchmark('ttft')}.json").is_file()

    kept = results_of(same.place)
    row = kept["results"][same.benchmark("seconds_per_token")]
    columns = kept["result_columns"]
    # asv saw the contender: the inverse of the throughput in our record.
    ours = [
        1 / sample.values[0]
        for trial in run.trials
        if trial.side == 1 and not trial.warmup
        for sample in trial.samples
        if sample.metric == "output_throughput"
    ]
    assert row[columns.index("result")] == pytest.approx([median(ours)], rel=1e-4)
    assert len(ours) in {TRIALS, BLOCKS}, "more only where the machine was noisy"
    assert kept["env_vars"] == {"HYBRIDWATCH_BUILD": BUILD, "HYBRIDWATCH_RELEASE": "0.27.1"}
    assert kept["params"]["machine"] == run.testbed.id
    # Minutes pass, and somebody looks on.
    begun = same.done.stdout.partition(f"[1/1] {same.scenario}: begins")[2]
    steps = begun.partition(f"[1/1] {same.scenario}: measured")[0]
    assert re.search(r"^\[\d+/\d+\] ", steps, re.MULTILINE)


def test_held_again_it_adds_nothing(same):
    before = sorted(path.name for path in (same.place / "results" / "nights").iterdir())
    kept = results_of(same.place)
    again = hold(same.place, BUILD, same.place / "home", same.scenario)
    assert f"[1/1] {same.scenario}: measured" in again.stdout
    assert len(list_records(same.place / "results")) == 1
    assert sorted(path.name for path in (same.place / "results" / "nights").iterdir()) == before
    assert results_of(same.place) == kept


@pytest.mark.slow
def test_a_planted_slow_down_turns_the_gate_red(slowed):
    assert slowed.done.returncode == 1, slowed.done.stdout + slowed.done.stderr
    gate = slowed.gate
    assert not gate["passed"]
    assert any("output_throughput" in reason for reason in gate["reasons"])
    (report,) = gate["reports"]
    found = {one["metric"]: one["verdict"] for one in report["comparisons"]}
    assert found["output_throughput"] == "regression"
    exact = [one for one in found if one.startswith("contract.")]
    assert exact
    assert {found[one] for one in exact} == {"equivalent"}, "it is slow, and as right as ever"
    assert "engine_step_rate" in report["attribution"]["movers"]


@pytest.mark.slow
def test_a_record_says_what_was_planted(slowed, same):
    healthy, slow = slowed.run.builds
    assert (slow.label, slow.flags["planted"]) == (SLOWED, "slow-step")
    assert "planted" not in healthy.flags
    assert not [build for build in same.run.builds if "planted" in build.flags]


@pytest.mark.slow
def test_report_and_comment_say_so_in_their_first_sentence(slowed):
    said = slowed.comment()
    assert said.stdout.splitlines()[0] == slowed.sentence
    assert "Slower: " in slowed.sentence
    assert "The gate stops this." in slowed.sentence
    assert "output\\_throughput" in said.stdout
    assert "planted: unset" in said.stdout
    assert "no news" not in said.stderr


def test_the_bot_is_silent_exactly_when_the_night_found_nothing(same):
    """No word on which it is: by chance an A/A night finds something now and then."""
    said, gate = same.comment(), same.gate
    verdicts = {one["verdict"] for report in gate["reports"] for one in report["comparisons"]}
    blind = same.sentence.startswith("**Could ")
    nothing = gate["passed"] and not gate["warnings"] and "improvement" not in verdicts
    nothing = nothing and not blind
    assert ("no news" in said.stderr) == nothing, said.stdout
    assert same.sentence.startswith(("**Equivalent", "**No regression shown")) == nothing
    assert said.stdout.splitlines()[0] == same.sentence
    if nothing or blind:
        assert same.done.returncode == 0


def results_of(place):
    (path,) = (
        path
        for path in (place / "asv").glob("*/*.json")
        if path.name not in {"machine.json", "benchmarks.json"}
    )
    return json.loads(path.read_text())
