"""asv itself with our plugin: which results it stores apart, which together, and what it says."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.engines.own_builds import add_source
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    IN_DOUBT,
    build_benchmark,
    compute_stats,
)
from hybridwatch.measurement.testbed import probe_testbed
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.nightly.asv_plugin import gpus_here, list_commits
from hybridwatch.records.run import MachineState
from hybridwatch.records.store import write_run
from tests.builders import HARNESS, SCENARIO, STARTED, a_run, noisy
from tests.checkout import a_copy, make_home
from tests.command_line import run_verb
from tests.pretended_nvml import Card, pretend
from tests.unit.orchestration.nightly.asv_project import (
    CURATED,
    NEVER,
    OURS,
    PLUGIN,
    ROOT,
    SMOKE,
    Project,
)

pytestmark = pytest.mark.long("calls asv some thirty times, a process for each benchmark")
BUILD, BROKEN = "cpu-0.27.1", "cpu-0.27.1~padded-rows-prefilling"
WITHOUT: dict[str, list[str]] = {"plugins": []}


@pytest.fixture
def project(tmp_path):
    return Project.make(tmp_path / "project")


def test_two_builds_at_one_commit_have_files_and_curves_of_their_own(project):
    first, second = project.commit(), project.commit()
    for commit, scale in ((first, 1), (second, 2)):
        for label, value in ((BUILD, 1.0), (BROKEN, 5.0)):
            project.measure(commit, VALUE=str(scale * value), HYBRIDWATCH_BUILD=label)
    variables = [one.env_vars for one in project.results() if one.commit_hash == first]
    assert sorted(variables, key=str) == [
        {"HYBRIDWATCH_BUILD": label, "HYBRIDWATCH_RELEASE": "0.27.1"} for label in (BUILD, BROKEN)
    ]
    said = project.asv("compare", first, second)
    lines = [line for line in said.splitlines() if SMOKE in line]
    assert len(lines) == 2, "each with itself"
    assert all(line.startswith("| +") for line in lines), said
    project.asv("publish", "--no-pull")
    assert project.published("index")["params"]["env-HYBRIDWATCH_BUILD"] == [BUILD, BROKEN]
    values = [[value for _, value in points] for points in project.graphs(SMOKE)]
    assert sorted(values) == [[1.0, 2.0], [5.0, 10.0]]


def test_without_the_plugin_the_second_build_replaces_the_first_and_stays_readable(tmp_path):
    project = Project.make(tmp_path / "project", **WITHOUT)
    commit = project.commit()
    project.asv("machine", "--yes")
    for label, value in ((BUILD, "1"), (BROKEN, "2")):
        project.measure(commit, VALUE=value, HYBRIDWATCH_BUILD=label)
    (stored,) = project.results()
    assert stored.get_result_value(SMOKE, []) == [2.0]

    config = project.folder / "asv.conf.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"plugins": [PLUGIN]}))
    project.measure(commit, VALUE="3")
    project.asv("publish", "--no-pull")
    assert sorted(value for ((_, value),) in project.graphs(SMOKE)) == [2.0, 3.0]


def test_a_tree_of_ones_own_is_another_build_after_an_edit(project, tmp_path):
    home, commit = make_home(tmp_path / "home"), project.commit()
    (home / "scenarios").mkdir()
    for rows in (2, 3):
        add_source(home, "mine", a_copy(tmp_path, worker=f"rows = {rows}\n"))
        project.measure(commit, HYBRIDWATCH_HOME=str(home), HYBRIDWATCH_BUILD="mine")
    labels = {one.env_vars["HYBRIDWATCH_BUILD"] for one in project.results()}
    assert len(labels) == 2
    assert all(label.startswith("mine@") for label in labels)


def test_where_a_commit_is_a_build_one_curve_goes_through_all(tmp_path):
    matrix = {"env_nobuild": {"HYBRIDWATCH_BUILD": None}}
    assert f'"matrix": {json.dumps(matrix)}' in (ROOT / "ci/asv.releases.conf.json").read_text()
    project = Project.make(tmp_path / "project", matrix=matrix)
    for label in (BUILD, "cpu-0.28.0"):
        project.measure(project.commit(), HYBRIDWATCH_BUILD=label)
    assert len({one.env_name for one in project.results()}) == 1


@pytest.mark.parametrize(("config", "machines"), [({}, 1), (WITHOUT, 2)])
def test_a_runner_that_is_new_each_night_has_its_history(tmp_path, config, machines):
    project = Project.make(tmp_path / "project", **config)
    for host in (("runner-1", "6.8.0-1017"), ("runner-2", "6.8.0-1020")):
        (project.folder / ".asv-machine.json").unlink(missing_ok=True)
        if config:
            project.asv("machine", "--yes", host=host)
        project.measure(project.commit(), host=host)
    assert len({one.params["machine"] for one in project.results()}) == machines
    if not config:
        project.asv("publish", "--no-pull")
        (points,) = project.graphs(SMOKE)
        assert len(points) == 2


@pytest.mark.parametrize(
    ("label", "gpus"), [("cuda-0.23.0", 1), (BUILD, 0), ("adopted", 1), (None, 1)]
)
def test_a_machine_has_the_gpus_that_its_build_computes_on(monkeypatch, label, gpus):
    pretend(monkeypatch, Card())
    monkeypatch.delenv(BUILD_VARIABLE, raising=False)
    if label:
        monkeypatch.setenv(BUILD_VARIABLE, label)
    assert len(gpus_here()) == gpus


def export(project, records):
    words = ("--results", records, "--out", project.folder / "results")
    run_verb("export", "--to", "asv", *words, status=0)


def test_what_is_exported_from_a_record_joins_what_asv_measured(project, tmp_path):
    first, second = project.commit(), project.commit()
    project.measure(first, bench=".", HYBRIDWATCH_BUILD=BUILD)
    run = a_run(
        {"ttft": noisy(0.04)},
        harness=replace(HARNESS, revision=second),
        scenario=replace(SCENARIO, id="smoke/one"),
        testbed=probe_testbed(),
    )
    for commit in (first, second):
        done = replace(run, id=commit[:8], harness=replace(HARNESS, revision=commit))
        write_run(tmp_path / "records", done)
    export(project, tmp_path / "records")
    of_first, of_second = sorted(project.results(), key=lambda one: one.commit_hash != first)
    assert of_first.env_name == of_second.env_name
    assert of_first.params == of_second.params
    assert of_first.env_vars == of_second.env_vars
    # What only asv measured stays, and what both know is in one row.
    assert {SMOKE, CURATED} <= set(of_first.get_all_result_keys())
    assert SMOKE in of_second.get_all_result_keys()
    project.asv("publish", "--no-pull")
    (points,) = project.graphs(SMOKE)
    assert len(points) == 2


def test_the_site_begins_with_smoke_and_has_no_tile_without_a_curve(project):
    project.git("remote", "add", "origin", "https://secret@code.example.org/o/n.git")
    commit = project.commit()
    project.measure(commit, bench=".", VALUE="0.00404")
    assert "4.04±0ms" in project.asv("show", commit)
    (stats,) = project.results()[0].get_result_stats(SMOKE, [])
    assert math.isfinite(stats["ci_99_a"]), "asv's own, of what says nothing"
    project.asv("publish", "--no-pull")
    index = project.published("index")
    assert list(index["benchmarks"]) == [SMOKE, CURATED]
    assert index["show_commit_url"] == "https://code.example.org/o/n/commit/"
    known = json.loads((project.folder / "results" / "benchmarks.json").read_text())
    assert NEVER in known, "its description stays, for the day it is measured"


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("git@example.org:o/n.git", "https://example.org/o/n/commit/"),
        ("ssh://git@example.org:22/o/n", "https://example.org/o/n/commit/"),
        ("https://u:p@example.org/o/n/", "https://example.org/o/n/commit/"),
        ("/srv/n.git", "#"),
        ("", "#"),
    ],
)
def test_a_site_links_to_where_commits_can_be_read(remote, shown):
    assert list_commits(remote) == shown


NOISES = {"known": 0.02, "large": 0.3, "unknown": None, "in_doubt": IN_DOUBT}


def stats_with(noise, value):
    found = compute_stats(build_benchmark(find_metric("ttft"), "median"), [value] * 9, noise)
    return dict(found or {})


def test_a_suites_interval_is_stored_and_no_samples(project):
    project.measure(project.commit(), STATS=json.dumps(stats_with(0.02, 1.0)))
    (stored,) = project.results()
    assert stored.get_result_value(SMOKE, []) == [1.0]
    assert stored.get_result_samples(SMOKE, []) == [None]
    (stats,) = stored.get_result_stats(SMOKE, [])
    assert (stats["ci_99_a"], stats["ci_99_b"]) == pytest.approx((0.95, 1.05))


def with_every_noise(project, commits):
    """Write what runs of these commits gave, a benchmark for each kind of noise."""
    project.measure(commits[0])
    (kept,) = (project.folder / "results").glob("*/*-*.json")
    document = json.loads(kept.read_text())
    columns = document["result_columns"][5:11]
    for commit, value in zip(commits, (1.0, 1.0, 1.0, 1.6, 1.6, 1.6), strict=True):
        document["commit_hash"] = commit
        document["date"] += 1000
        for name, noise in NOISES.items():
            stats = stats_with(noise, value)
            kept_stats = [[stats[one.removeprefix("stats_")]] for one in columns]
            document["results"][f"{SMOKE}_{name}"] = [[value], [], "1", 1, 1, *kept_stats]
        kept.with_name(f"{commit[:8]}{kept.name[8:]}").write_text(json.dumps(document))
    path = project.folder / "results" / "benchmarks.json"
    known = json.loads(path.read_text())
    known |= {f"{SMOKE}_{name}": {**known[SMOKE], "name": f"{SMOKE}_{name}"} for name in NOISES}
    path.write_text(json.dumps(known))


def test_asv_calls_worse_what_is_beyond_the_noise_between_runs(project):
    commits = [project.commit() for _ in range(6)]
    with_every_noise(project, commits)
    said = project.asv("compare", commits[0], commits[-1]).splitlines()
    project.asv("publish", "--no-pull")
    stepped = {name for name, *_ in project.published("regressions")["regressions"]}
    for name in NOISES:
        (line,) = (line for line in said if f"{SMOKE}_{name}" in line)
        assert line.startswith("| +") == (name == "known"), line
        assert ("~1.60" in line) == (name != "known"), line
        assert (f"{SMOKE}_{name}" in stepped) == (name != "in_doubt")
        (points,) = project.graphs(f"{SMOKE}_{name}")
        assert [value for _, value in points] == [1.0, 1.0, 1.0, 1.6, 1.6, 1.6], "all are drawn"


def restless(run):
    """The same run where the calibration kernel took 1 to 2 ms."""
    seen = (MachineState(0.001, 0.001 * (1 + at % 2)) for at in range(len(run.trials)))
    trials = zip(run.trials, seen, strict=True)
    return replace(run, trials=tuple(replace(one, surroundings=now) for one, now in trials))


def test_an_exported_time_that_is_in_doubt_is_drawn_and_no_regression(project, tmp_path):
    kinds = {"quiet": (7, lambda run: run), "brief": (3, lambda run: run), "noisy": (7, restless)}
    for number, center in enumerate((0.04, 0.041, 0.04, 0.081, 0.08, 0.081)):
        commit = project.commit()
        for kind, (trials, change) in kinds.items():
            run = a_run(
                {"ttft": noisy(center, trials)},
                id=f"{kind.encode().hex()[:6]}{number:02x}",
                started_at=STARTED + timedelta(hours=number),
                harness=replace(HARNESS, revision=commit),
                scenario=replace(SCENARIO, id=f"smoke/{kind}"),
            )
            write_run(tmp_path / "records", change(run))
    export(project, tmp_path / "records")
    project.asv("publish", "--no-pull")
    found = {one for one, *_ in project.published("regressions")["regressions"]}
    assert found & {f"smoke.{kind}.{kind.title()}.track_ttft" for kind in kinds} == {
        "smoke.quiet.Quiet.track_ttft"
    }
    for kind in kinds:
        (points,) = project.graphs(f"smoke.{kind}.{kind.title()}.track_ttft")
        assert len(points) == 6


def asv_here(tmp_path, *words, **variables):
    """Real suites, asv's results in a folder of their own."""
    config = {
        "version": 1,
        "project": "p",
        "repo": str(ROOT),
        "branches": ["HEAD"],
        "plugins": [".hybridwatch.orchestration.nightly.asv_plugin"],
        "environment_type": "existing",
        "benchmark_dir": str(ROOT / "benchmarks"),
        "results_dir": str(tmp_path / "asv"),
    }
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))
    return subprocess.run(
        [sys.executable, "-m", "asv", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(tmp_path), **OURS, **variables},
    )  # fmt: skip


def test_nothing_is_run_that_the_build_cannot_run(tmp_path):
    done = asv_here(tmp_path, "run", "--python=same", "--bench", r"^gpu\.")
    assert "No benchmarks selected" in done.stdout, done.stdout + done.stderr
    known = json.loads((tmp_path / "asv" / "benchmarks.json").read_text())
    assert any(name.startswith("gpu.") for name in known)


def test_a_missing_build_is_named_without_any_option(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    for name in ("engine", "models", "oracles", "scenarios"):
        (home / name).symlink_to(ROOT / name)
    done = asv_here(
        tmp_path, "run", "--python=same", "--bench", r"^smoke\.dummy_run\.DummyRun\.track_ttft",
        HYBRIDWATCH_HOME=str(home), HYBRIDWATCH_RESULTS=str(tmp_path / "results"),
    )  # fmt: skip
    assert done.returncode == 2
    missing = f"smoke/dummy-run: the environment of {DEFAULT_BUILD} is missing; run: hybridwatch"
    assert missing in done.stderr


def test_a_build_that_nobody_knows_is_refused_before_anything_is_run(tmp_path):
    done = asv_here(tmp_path, "run", "--python=same", HYBRIDWATCH_BUILD="cpu-9")
    assert done.returncode == 1
    assert "HYBRIDWATCH_BUILD: " in done.stdout + done.stderr
    assert "cpu-9" in done.stdout + done.stderr
