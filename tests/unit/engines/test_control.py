"""What a live engine is told and says: the control channel, and ``/metrics``."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hybridwatch.engines import load_client
from hybridwatch.engines.control import EngineControl
from hybridwatch.engines.load_client import StepCounts, parse_step_counts, read_step_counts
from hybridwatch.errors import BuildError, EngineError, MeasurementError


def test_what_the_probes_of_all_workers_saw_is_put_together(monkeypatch):
    seen = [
        {"steps": 3, "reads_per_step": [1, 2, 2], "sites": {"a.py:f:1": 4, "b.py:g:2": 1}},
        {"steps": 1, "reads_per_step": [5], "sites": {"b.py:g:2": 5}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("host-sync") == {
        "steps": 4,
        "reads_per_step": [1, 2, 2, 5],
        "sites": {"a.py:f:1": 4, "b.py:g:2": 6},
    }


def test_counts_by_two_names_are_added_name_by_name(monkeypatch):
    seen = [
        {"site_kinds": {"a": {"item": 2, "copy": 1}}, "other_threads": {"waits": 1}},
        {"site_kinds": {"a": {"item": 1}, "b": {"event": 4}}, "other_threads": {"waits": 2}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("host-sync") == {
        "site_kinds": {"a": {"item": 3, "copy": 1}, "b": {"event": 4}},
        "other_threads": {"waits": 3},
    }


def test_count_that_one_worker_cannot_watch_is_known_of_none(monkeypatch):
    seen = [
        {"replays": 3, "states_off": 0},
        {"replays": 1, "unsupported": {"states_off": "expected two states"}},
        {"replays": 2, "unsupported": {"states_off": "expected two states"}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("contract") == {
        "replays": 6,
        "unsupported": {"states_off": "expected two states"},
    }


def test_every_worker_learns_what_is_planted(monkeypatch):
    asked = []

    def call(_control, *words):
        asked.append(words)
        return [{"planted": ["slow-step"]}] * 2

    monkeypatch.setattr(EngineControl, "_call", call)
    EngineControl([]).plant(("slow-step",))
    assert asked == [("plant", ["slow-step"])]


def test_a_fault_that_a_worker_refuses_is_reported(monkeypatch):
    answers = [{"planted": ["x"]}, {"error": "no fault 'x' to plant; known: slow-step"}]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: answers)
    with pytest.raises(BuildError, match="no fault 'x' to plant"):
        EngineControl([]).plant(("x",))


def test_blocks_that_a_transfer_holds_are_waited_for(monkeypatch):
    answers = [[{"requests": 2, "lost": 9}], [{"requests": 1, "lost": 4}, {"requests": 0}]]
    left = [*answers, [{"requests": 0, "lost": 3}, {"requests": 0, "lost": 1}]]
    monkeypatch.setattr(
        EngineControl, "_call", lambda *_: left.pop(0) if len(left) > 1 else left[0]
    )
    control = EngineControl([])
    control.await_transfers()
    assert len(left) == 1
    assert control.count_lost() == 4


def test_a_cache_in_parts_is_added_up_and_one_that_is_not_told_is_an_error(monkeypatch):
    answers: list[dict[str, Any]] = [{"blocks": 7, "held": 1}, {"blocks": 5, "held": 0}]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: answers)
    assert EngineControl([]).read_capacity() == {"blocks": 12, "held": 1}
    answers[1] = {"error": "KeyError: 'pool'"}
    with pytest.raises(MeasurementError, match=r"does not tell its cache: KeyError: 'pool'"):
        EngineControl([]).read_capacity()


def test_of_a_start_the_slowest_worker_counts_phase_by_phase(monkeypatch):
    answers = [
        {"weights_time": 3.0, "capture_time": 1.0},
        {"weights_time": 2.0, "capture_time": 4.0},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: answers)
    assert EngineControl([]).read_start() == {"weights_time": 3.0, "capture_time": 4.0}
    answers[1] = {}
    assert EngineControl([]).read_start() == answers[0]


def test_a_request_that_never_goes_is_not_waited_for_without_end(monkeypatch):
    asked = []

    def call(*_: object) -> list[dict[str, int]]:
        asked.append(1)
        return [{"requests": 1, "lost": 2}]

    monkeypatch.setattr("hybridwatch.engines.control._TRANSFERS_S", 0.05)
    monkeypatch.setattr(EngineControl, "_call", call)
    EngineControl([]).await_transfers()
    assert 1 < len(asked) < 10


# As vLLM 0.27.1 writes it, most lines left out; the name of the model is made up.
TEXT = """\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="a } b"} 384.0
vllm:generation_tokens_created{engine="0",model_name="a } b"} 1.7929e+09
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="a } b"} 20.0
vllm:iteration_tokens_total_count{engine="0",model_name="a } b"} 103.0
vllm:iteration_tokens_total_sum{engine="0",model_name="a } b"} 1728.0
vllm:iteration_tokens_total_created{engine="0",model_name="a } b"} 1.7929e+09
vllm:time_to_first_token_seconds_count{engine="0",model_name="a } b"} 12.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="a } b"} 0.31
vllm:inter_token_latency_seconds_count{engine="0",model_name="a } b"} 301.0
vllm:request_time_per_output_token_seconds_count{engine="0",model_name="a } b"} 12.0
vllm:num_preemptions_total{engine="0",model_name="a } b"} 5.0
"""


def engine(ranks: int = 1) -> Any:
    """What a server is known by here; the first of a pair must not be asked."""
    arguments = SimpleNamespace(engine=SimpleNamespace(data_parallel_size=ranks))
    first = SimpleNamespace(url="http://127.0.0.1:1", error=EngineError)
    return SimpleNamespace(launch=arguments, servers=(cast("Any", None), first))


def test_totals_are_read():
    assert parse_step_counts(TEXT) == StepCounts(103, 313, 384, preemptions=5)


def test_totals_of_several_engines_are_added():
    other = TEXT.replace('engine="0"', 'engine="1"')
    assert parse_step_counts(TEXT + other) == StepCounts(206, 626, 768, preemptions=10)


@pytest.mark.parametrize(
    "gone", ["iteration_tokens", "first_token", "inter_token", "generation", "preempt"]
)
def test_an_engine_that_does_not_keep_one_of_them_tells_nothing(gone):
    lines = [line for line in TEXT.splitlines() if gone not in line]
    assert parse_step_counts("\n".join(lines)) is None


def test_what_came_between_two_looks():
    later, earlier = StepCounts(103, 313, 384, 5), StepCounts(3, 13, 84, 4)
    assert later.since(earlier) == StepCounts(100, 300, 300, 1)


def test_several_front_ends_are_not_asked():
    assert read_step_counts(engine(ranks=2)) is None


def test_a_mute_engine_is_an_error():
    with pytest.raises(EngineError, match="no answer from the engine to /metrics"):
        read_step_counts(engine())


def test_of_a_pair_the_one_that_answers_is_asked(monkeypatch):
    pair = engine()
    texts = {id(pair.servers[0]): "", id(pair.servers[1]): TEXT}
    monkeypatch.setattr(load_client, "_read_metrics", lambda server: texts[id(server)])
    assert read_step_counts(pair) == parse_step_counts(TEXT)
