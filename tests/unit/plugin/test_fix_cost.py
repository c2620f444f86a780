"""Forms of a fix, measured in turn: which there are, in which order, and what they add."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hybridwatch_engine.fixes.fix import Finding
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree
from hybridwatch_engine_lab.studies import fix_cost, stepping
from hybridwatch_engine_lab.studies.fix_cost import adds_syncs, build_forms, costs, syncs_added
from hybridwatch_engine_lab.studies.stepping import (
    StepStretch,
    compute_speeds,
    step_time_ratio,
    time_stretches,
)


def a_fix(state, *, can_revert=True):
    def missing():
        raise AttributeError("no such function")

    return SimpleNamespace(
        header=SimpleNamespace(id="a-fix"),
        probe=lambda _tree: Finding(state, "somewhere"),
        apply=missing if state == "renamed" else PatchSet,
        revert=PatchSet if can_revert else None,
    )


@pytest.mark.parametrize(
    ("fix", "forms"),
    [
        (a_fix("lacking"), ["stock", "ours"]),
        (a_fix("present"), ["stock", "upstream", "ours"]),
        (a_fix("present", can_revert=False), ["upstream", "ours"]),
        (a_fix("not-applicable"), []),
        (a_fix("renamed"), []),
    ],
)
def test_the_forms_that_a_release_gives(fix, forms):
    assert list(build_forms(fix, SourceTree(Path()))) == forms


class Engine:
    """Takes a second for a step, and another for each patch that is in."""

    slow = 1

    @staticmethod
    def patch():
        def slower(original):
            return original + 1

        return PatchSet(Patch(Engine, "slow", slower))


@pytest.fixture
def made(monkeypatch):
    """Stretches in the order in which they are made."""
    order = []

    def stretch(_engine, name, rows, *_):
        order.append(name)
        return StepStretch((float(Engine.slow),) * 4, 4 * rows)

    monkeypatch.setattr(stepping, "stretch", stretch)
    return order


def test_forms_take_turns_and_none_stays_in(made):
    found = time_stretches(None, {"stock": PatchSet(), "ours": Engine.patch()}, rows=8, rounds=3)
    assert [name.split("-")[-1] for name in made] == [
        *("stock", "ours"),  # warms up
        *("ours", "stock", "stock", "ours", "ours", "stock"),
    ]
    assert {name: len(stretches) for name, stretches in found.items()} == {"stock": 3, "ours": 3}
    assert Engine.slow == 1
    assert compute_speeds(found) == {
        "stock": {"step_seconds": 1.0, "tokens_per_second": 8.0},
        "ours": {"step_seconds": 2.0, "tokens_per_second": 4.0},
    }
    assert step_time_ratio(found, "ours", "stock") == {"ratio": 2.0, "low": 2.0, "high": 2.0}


def test_costs_are_told_for_every_pair_that_there_is(made, monkeypatch):
    per_step = {"stock": 3.0, "upstream": 4.0, "ours": 4.0}
    monkeypatch.setattr(fix_cost, "count_syncs", lambda *_: per_step)
    forms = {"stock": PatchSet(), "upstream": Engine.patch(), "ours": Engine.patch()}
    told = costs(None, forms, 8, 2, "a-fix")
    assert set(told["step_time"]) == {"ours/stock", "upstream/stock", "ours/upstream"}
    assert told["step_time"]["ours/upstream"]["ratio"] == 1.0
    assert told["syncs_added"] == {"upstream": 1.0, "ours": 0.0}
    assert made


@pytest.mark.parametrize(
    ("per_step", "added"),
    [
        ({"stock": 3.0, "ours": 3.0}, {"ours": 0.0}),
        ({"stock": 3.0, "ours": 4.0}, {"ours": 1.0}),  # a planted defect
        ({"upstream": 3.0, "ours": 3.0}, {"ours": 0.0}),
    ],
)
def test_a_form_adds_to_the_one_below_it(per_step, added):
    assert syncs_added(per_step) == added
    assert adds_syncs({"a-fix": {"8": {"syncs_added": added}}, "none": {}}) is (added["ours"] > 0)


@pytest.mark.parametrize(("chosen", "is_v2"), [("0", False), ("1", True)])
def test_only_fixes_of_the_model_runner_in_use_are_measured(monkeypatch, chosen, is_v2):
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", chosen)
    found = fix_cost.reached()
    assert ("draft-max-seq-len-target" in found) is is_v2
    assert ("padded-rows-prefilling" in found) is not is_v2
