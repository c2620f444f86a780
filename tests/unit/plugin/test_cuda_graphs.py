"""FULL graphs of a GPU: remembered at capture, watched at replay, set aside on request.

vLLM's wrapper is stood for by one that captures and replays by the same rules and keeps a diary.
"""

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine import replays
from hybridwatch_engine.replays import REPLAYS

from tests.unit.plugin.modules import stand_in

Mode = Enum("Mode", "NONE PIECEWISE FULL")


class Recurrent:
    """Stands for a recurrent layer of any family."""


class Mamba:
    """Stands for the metadata that a recurrent layer gets."""


class Wrapper:
    """Stands for vLLM's ``CUDAGraphWrapper``."""

    def __init__(self, mode: Mode, diary: list[str]) -> None:
        self.runtime_mode = mode
        self.concrete_cudagraph_entries: dict[str, Any] = {}
        self._diary = diary

    def runnable(self, x: str) -> str:
        self._diary.append("run")
        return f"fresh {x}"

    def __call__(self, x: str) -> str:
        if CONTEXT.cudagraph_runtime_mode != self.runtime_mode:
            return self.runnable(x)
        graphs, batch = self.concrete_cudagraph_entries, CONTEXT.batch_descriptor
        if batch not in graphs:
            graphs[batch] = SimpleNamespace(cudagraph=f"graph of {batch}")
            return self.runnable(x)
        self._diary.append(f"replay {batch}")
        return f"stale {x}"


CONTEXT = SimpleNamespace()


@pytest.fixture
def diary(monkeypatch):
    """Stand in for vLLM, hook the wrapper, and keep what happens."""
    stand_in(monkeypatch, "vllm.config", CUDAGraphMode=Mode)
    stand_in(monkeypatch, "vllm.compilation.cuda_graph", CUDAGraphWrapper=Wrapper)
    context = {
        "get_forward_context": lambda: CONTEXT,
        "is_forward_context_available": lambda: CONTEXT.there,
    }
    stand_in(monkeypatch, "vllm.forward_context", **context)
    stand_in(monkeypatch, "vllm.model_executor.layers.mamba.abstract", MambaBase=Recurrent)
    hook = replays.watched_graphs.__wrapped__()
    hook.install()
    kept: list[str] = []
    yield kept
    hook.remove()
    REPLAYS.eager = False
    REPLAYS.observers.clear()


def step(batch: str = "4 rows", mode: Mode = Mode.FULL, **metadata: Any) -> None:
    """What the runner says of the step that follows."""
    vars(CONTEXT).update(
        there=True,
        cudagraph_runtime_mode=mode,
        batch_descriptor=batch,
        attn_metadata=metadata,
        no_compile_layers={"mamba": Recurrent(), "attention": object()},
    )


def seen() -> list[Any]:
    """What an observer is told from now on: what a graph reads, and what is fresh."""
    told: list[Any] = []
    REPLAYS.observers.append(lambda replay: told.append((replay.reads, replay.fresh)))
    return told


def test_observers_see_what_was_captured_next_to_what_is_fresh(diary):
    model, told = Wrapper(Mode.FULL, diary), seen()
    old, new, attention = Mamba(), Mamba(), object()
    step(mamba=old, attention=attention)
    assert model("a") == "fresh a"
    assert told == [], "a capture is no replay"
    step(mamba=new, attention=attention)
    assert model("b") == "stale b"
    assert told == [
        ({"mamba": old, "attention": attention}, {"mamba": new, "attention": attention})
    ]
    assert diary == ["run", "replay 4 rows"]


def test_each_batch_size_has_its_own(diary):
    model, told = Wrapper(Mode.FULL, diary), seen()
    graphs = {size: Mamba() for size in ("4 rows", "8 rows")}
    for size, metadata in graphs.items():
        step(size, mamba=metadata)
        model("a")
    for size in graphs:
        step(size, mamba=Mamba())
        model("b")
    assert [graph["mamba"] for graph, _ in told] == list(graphs.values())


def test_a_replay_can_be_set_aside_and_comes_back(diary):
    model, told = Wrapper(Mode.FULL, diary), seen()
    step(mamba=Mamba())
    model("a")
    REPLAYS.eager = True
    assert model("b") == "fresh b"
    assert told == []
    REPLAYS.eager = False
    assert model("c") == "stale c"
    assert len(told) == 1


def test_graphs_are_captured_while_they_are_set_aside(diary):
    REPLAYS.eager = True
    model = Wrapper(Mode.FULL, diary)
    step(mamba=Mamba())
    model("a")
    REPLAYS.eager = False
    assert model("b") == "stale b"


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.PIECEWISE])
def test_other_graphs_and_none_are_left_alone(diary, mode):
    model, told = Wrapper(mode, diary), seen()
    step(mode=mode, mamba=Mamba())
    model("a")
    model("b")
    assert told == []
    vars(CONTEXT).update(there=False)
    model("c")
    assert told == []


def test_a_batch_without_a_graph_is_run_as_ever(diary):
    model, told = Wrapper(Mode.FULL, diary), seen()
    step(mode=Mode.NONE, mamba=Mamba())
    assert model("a") == "fresh a"
    assert told == []


def test_a_draft_without_mamba_layers_is_nobodys_business(diary):
    model, told = Wrapper(Mode.FULL, diary), seen()
    step(attention=object())
    model("a")
    assert model("b") == "stale b"
    assert told == []
