"""The asv suites: every scenario once, a session each, no number that asv reads the wrong way."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from statistics import median
from types import SimpleNamespace

import asv.benchmark
import pytest
from asv.commands.compare import _is_result_better
from asv.config import Config
from asv_runner.discovery import disc_benchmarks
from asv_runner.statistics import compute_stats

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.run_noise import REACH, learned_noise
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import BuildError, ScenarioError
from hybridwatch.formats.write.asv_benchmarks import (
    BUILD_VARIABLE,
    Form,
    FoundBenchmarks,
    TrackedMetric,
    tracked,
)
from hybridwatch.metrics import Direction, Kind, Unit, find_metric
from hybridwatch.orchestration.nightly import suite
from hybridwatch.orchestration.nightly.suite import (
    BASELINE_VARIABLE,
    CONSOLE_VARIABLE,
    RECEIPT_VARIABLE,
    STATS_MARK,
    UNTIL_VARIABLE,
    can_run,
    enough_trials,
    list_values,
    measured,
)
from hybridwatch.orchestration.nightly.suite import suites as suites_of
from hybridwatch.records.store import write_run
from hybridwatch.records.store.layout import RESULTS_VARIABLE
from hybridwatch.scenarios.load import find, load_scenario
from tests.builders import SCENARIO, STARTED, a_comparison, a_run, noisy
from tests.shipped import ROOT

SCENARIOS = find(ROOT / "scenarios", ())
EVERY = {one.name: one for scenario in SCENARIOS for one in tracked(scenario)}
BACKWARDS = {name for name, one in EVERY.items() if one.unit.endswith("higher is better")}


@pytest.fixture(scope="module")
def benchmarks():
    before = list(sys.path)
    sys.path.insert(0, str(ROOT))
    found = list(disc_benchmarks(str(ROOT / "benchmarks")))
    sys.path[:] = before
    return found


def suites(benchmarks):
    return {type(benchmark.func.__self__) for benchmark in benchmarks}


def test_every_scenario_has_one_class_in_a_place_of_its_name(benchmarks):
    covered = Counter(suite.scenario.id for suite in suites(benchmarks))
    assert covered == Counter(scenario.id for scenario in SCENARIOS)
    for benchmark in benchmarks:
        suite = type(benchmark.func.__self__)
        path = suite.scenario.id.replace("/", ".").replace("-", "_")
        assert suite.__module__ == f"benchmarks.{path}"
        assert benchmark.name.startswith(f"{path}.{suite.__qualname__}.track_")


@pytest.mark.parametrize(
    "name",
    [
        "smoke.padded_graph_rows.PaddedGraphRows.track_wrong_tokens",
        "smoke.padded_graph_rows.PaddedGraphRows.track_seconds_per_token",
        "curated.dp_dummy_run.DpDummyRun.track_ttft",
        "gpu.granite_4_h_tiny.Granite4HTiny.track_output_throughput",
        "gpu.qwen3_5_9b.Qwen359b.track_ttft",
        "reported.i39273_draftless_step.I39273DraftlessStep.track_steps_per_token",
    ],
)
def test_asv_finds_a_benchmark_under_the_name_of_its_results_so_far(name, benchmarks):
    assert [benchmark.name for benchmark in benchmarks].count(name) == 1


def test_a_new_scenario_is_found_and_a_broken_one_hides_no_other(tmp_path):
    good = (ROOT / "scenarios/smoke/padded-graph-rows.toml").read_text()
    (tmp_path / "engine").symlink_to(ROOT / "engine")
    files = {"group/new-one": good, "group/broken": good.replace("seed = 7", 'seed = "x"')}
    for name, text in files.items():
        path = tmp_path / "scenarios" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(
        [sys.executable, asv.benchmark.__file__, "discover", ROOT / "benchmarks", tmp_path / "out"],
        env={**os.environ, "HYBRIDWATCH_HOME": str(tmp_path)},
        check=True,
    )
    scenario = load_scenario(tmp_path / "scenarios/group/new-one.toml", tmp_path / "scenarios")
    found = {one["name"] for one in json.loads((tmp_path / "out").read_text())}
    broken = "group.broken.Broken.track_scenario_file"
    good_names = {f"group.new_one.NewOne.track_{one.name}" for one in tracked(scenario)}
    assert found == {broken} | good_names


def test_the_benchmark_of_a_broken_scenario_says_what_is_wrong(tmp_path):
    path = tmp_path / "scenarios/group/Not So.toml"
    path.parent.mkdir(parents=True)
    path.write_text("version = 1\n")
    made = suites_of(tmp_path / "scenarios", "made_up")
    with pytest.raises(ScenarioError, match=r"scenarios/group/Not So.toml: expected lower-case"):
        made["group_Not_So"]().track_scenario_file()


def test_asv_makes_one_session_per_class(benchmarks):
    # asv shares what a setup_cache made among all benchmarks with its key.
    keys = {
        benchmark.setup_cache_key: benchmark.func.__self__.scenario.id for benchmark in benchmarks
    }
    assert sorted(keys.values()) == sorted(scenario.id for scenario in SCENARIOS)
    assert all(benchmark.setup_cache_timeout >= 3600 for benchmark in benchmarks)
    assert all(benchmark.timeout >= 60 for benchmark in benchmarks)


def test_asv_knows_every_benchmark_by_its_unit_and_the_scenarios_version(benchmarks):
    for benchmark in benchmarks:
        suite = benchmark.func.__self__
        assert benchmark.version == str(suite.scenario.version)
        assert benchmark.unit == EVERY[benchmark.name.rpartition("track_")[2]].unit


def test_only_throughputs_are_better_when_higher_and_each_has_its_twin():
    assert {"output_throughput", "request_throughput"} == BACKWARDS
    for name, one in EVERY.items():
        assert (one.better is Direction.HIGHER) == (name in BACKWARDS), name
    for name in BACKWARDS:
        twins = [
            one
            for one in EVERY.values()
            if one.metric == EVERY[name].metric
            and one.form is Form.INVERSE
            and one.unit == "seconds"
        ]
        assert len(twins) == 1, name


def sides_of(one: TrackedMetric):
    """A healthy side of a metric, and one that is worse by a fifth or by what breaks."""
    match one.metric.kind:
        case Kind.EXACT:
            return (0.0,) * 3, (12.0,) * 3
        case Kind.PROPORTION:
            return "1" * 190 + "0" * 10, "1" * 150 + "0" * 50
        case _:
            worse = 0.8 if one.metric.better is Direction.HIGHER else 1.25
            # Twelve blocks: pairs of the settled kind.
            return noisy(0.5, 12, 0.01, 1), noisy(0.5 * worse, 12, 0.01, 2)


def asv_calls_it_worse(base, contender):
    """asv's own rule (``asv compare``) on what two runs gave it, each with its interval."""

    def value(handed):
        return compute_stats(handed["samples"], 1)[0] if isinstance(handed, dict) else handed

    (old, old_stats), (new, new_stats) = ((value(one), (of, None)) for one, of in (base, contender))
    if _is_result_better(new, old, new_stats, old_stats, 1.1):
        return False
    return True if _is_result_better(old, new, old_stats, new_stats, 1.1) else None


@pytest.mark.parametrize("name", sorted(EVERY))
def test_asv_compare_calls_worse_what_we_call_a_regression(name, benchmarks, capsys):
    one = EVERY[name]
    healthy, worse = sides_of(one)
    run = a_run({one.metric.id: healthy}, {one.metric.id: worse})
    (comparison, *_) = [
        found
        for found in build_report(run).comparisons
        if (found.metric.id, found.statistic) == (one.metric.id, one.statistic)
    ]
    assert comparison.verdict is Verdict.REGRESSION
    track = next(b.func for b in benchmarks if b.name.endswith(f".track_{name}"))

    def runs(learned):
        for side in (0, 1):
            values = list_values(
                OneSide(run, side), [one], {(one.metric.id, one.statistic): learned}
            )
            handed, said = track(values), capsys.readouterr().err
            yield handed, json.loads(said.removeprefix(STATS_MARK)) if said else None

    # The planted defect is in the product itself: asv reads a lost throughput as a gain. Its twin
    # is one of the other names here.
    assert asv_calls_it_worse(*runs(0.02)) is (name not in BACKWARDS)
    if one.metric.kind.has_noise:  # and of nothing it says so while nobody knows the noise
        assert asv_calls_it_worse(*runs(None)) is None
        assert asv_calls_it_worse(*runs(0.2)) is None


def test_asv_gets_enough_samples_not_to_be_in_doubt():
    for scenario in SCENARIOS:
        counts = enough_trials(scenario).trials
        assert min(counts.performance, counts.host_sync) >= 7


def test_a_number_that_an_engine_lacks_is_skipped_not_zero(benchmarks):
    track = benchmarks[0].func
    name = benchmarks[0].name.rpartition("track_")[2]
    handed = track({name: FoundBenchmarks((), None)})
    assert math.isnan(handed)


def test_units_are_words_that_asv_knows_or_shows():
    assert {one.unit for one in EVERY.values() if one.metric.unit is Unit.SECONDS} == {"seconds"}
    assert "1" not in {one.unit for one in EVERY.values()}
    assert "engine_cpu_time" in EVERY


def test_a_count_is_shown_whole(benchmarks):
    name = "smoke.padded_graph_rows.PaddedGraphRows.track_wrong_tokens"
    track = next(one.func for one in benchmarks if one.name == name)
    assert json.dumps(track({"wrong_tokens": FoundBenchmarks((0.0, 27.0), None)})) == "27"


@pytest.mark.parametrize(("earlier", "known"), [(25, True), (5, False)])
def test_what_earlier_runs_tell_of_the_noise_is_in_the_interval(
    tmp_path, monkeypatch, earlier, known
):
    centers = noisy(0.04, earlier + 1, 0.02)
    for number, center in enumerate(centers):
        run = a_run(
            {"ttft": noisy(center, 7, 0.001)},
            id=f"{number:08x}",
            started_at=STARTED + timedelta(hours=number),
        )
        record = write_run(tmp_path / "results", run)
        (tmp_path / "receipt").write_text(str(record))
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results"))
    monkeypatch.setenv(RECEIPT_VARIABLE, str(tmp_path / "receipt"))
    scenario = next(one for one in SCENARIOS if one.id == SCENARIO.id)
    stats = measured(scenario, [EVERY["ttft"]])["ttft"].stats
    assert stats is not None
    assert math.isfinite(stats["ci_99_a"]) == known
    if known:
        medians = [median(noisy(one, 7, 0.001)) for one in centers]
        (noise,) = learned_noise([(find_metric("ttft"), medians)])
        assert noise is not None
        center = median(noisy(centers[-1], 7, 0.001))
        assert stats["ci_99_b"] == pytest.approx(center * (1 + REACH * noise / 2))


@pytest.mark.parametrize("shown", [True, False])
def test_who_looks_on_is_reported_and_no_file_is_written_into(tmp_path, monkeypatch, shown):
    # In a file its owner would go on writing over what others have added.
    looks, console = os.pipe()
    (tmp_path / "console").write_text("owner's")
    place = f"/proc/self/fd/{console}" if shown else str(tmp_path / "console")
    monkeypatch.setenv(CONSOLE_VARIABLE, place)
    monkeypatch.setenv(BUILD_VARIABLE, "cpu-9")
    with pytest.raises(BuildError, match="cpu-9"):
        measured(SCENARIOS[0], [])
    os.close(console)
    said = os.read(looks, 9999).decode()
    os.close(looks)
    assert (f"{SCENARIOS[0].id}: " in said and "cpu-9" in said) == shown
    assert (tmp_path / "console").read_text() == "owner's"


FOR_GPUS = [scenario.id for scenario in SCENARIOS if not scenario.fits("cpu")]


@pytest.fixture
def of_gpus(benchmarks):
    """A benchmark of each suite that needs a GPU."""
    of_suites = {b.func.__self__.scenario.id: b for b in benchmarks}
    return [of_suites[scenario_id] for scenario_id in FOR_GPUS]


@pytest.mark.parametrize("builds", [{}, {BUILD_VARIABLE: "cpu-0.27.1~single-token-extend"}])
def test_a_suite_for_gpus_is_skipped_on_a_cpu_build(of_gpus, monkeypatch, builds):
    for variable in (BUILD_VARIABLE, BASELINE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    for variable, label in builds.items():
        monkeypatch.setenv(variable, label)
    assert len(of_gpus) > 10
    for benchmark in of_gpus:
        # As asv goes about it: the cache, then the setup with it.
        benchmark.set_cache(benchmark.do_setup_cache())
        assert benchmark.do_setup() is True


def test_it_is_not_skipped_on_a_gpu_build_and_no_other_is_on_a_cpu_build(benchmarks, monkeypatch):
    monkeypatch.delenv(BASELINE_VARIABLE, raising=False)
    for label, accelerator in (("cuda-0.23.0", "cuda"), ("cpu-0.27.1", "cpu")):
        monkeypatch.setenv(BUILD_VARIABLE, label)
        ready = {s.scenario.id for s in suites(benchmarks) if can_run(s.scenario)}
        assert ready == {s.id for s in SCENARIOS if s.fits(accelerator)}
    monkeypatch.setenv(BASELINE_VARIABLE, "cuda-0.23.0")
    assert not {s.id for s in SCENARIOS if can_run(s)} & set(FOR_GPUS)


CONFIGS = sorted([ROOT / "asv.conf.json", *(ROOT / "ci").glob("asv.*.conf.json")])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_asv_loads_its_configurations(path):
    config = Config.load(str(path))
    known = set(vars(Config())) | {"version"}
    assert set(vars(config)) <= known, "asv takes a misspelt key and ignores it"
    folder = (path.parent / config.benchmark_dir).resolve()
    assert folder == ROOT / "benchmarks"
    variables = dict.fromkeys(
        ("build_dir", "build_cache_dir", "env_dir", "wheel_file", "conf_dir", "commit", "project"),
        "x",
    )
    for command in (*(config.build_command or ()), *(config.install_command or ())):
        assert command.format(**variables)


@pytest.mark.parametrize(
    ("until", "taken", "again"),
    [
        (None, 60, True),
        (1000, 400, True),
        (1000, 600, False),
        (0, 60, False),
        (None, 3 * 3600, False),
    ],
    ids=["no night around it", "time enough", "too little time", "turned off", "asv would end it"],
)
def test_times_are_measured_again_only_if_the_night_has_as_much_time(
    monkeypatch, until, taken, again
):
    """A record is written at the end: a second look that is cut off would lose the first."""
    clock = 1e9
    monkeypatch.delenv(UNTIL_VARIABLE, raising=False)
    if until is not None:
        monkeypatch.setenv(UNTIL_VARIABLE, str(clock + until if until else 0.0))
    monkeypatch.setattr(suite, "time", SimpleNamespace(time=lambda: clock + taken))
    reason = suite._second_look(clock)
    slower = a_comparison({"tpot": noisy(1.0, 10, 0.01)}, {"tpot": noisy(1.1, 10, 0.01, 2)})
    assert bool(reason(slower)) is again
