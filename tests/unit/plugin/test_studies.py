"""What the studies of costs make of an engine's steps, without an engine."""

import json
import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hybridwatch_engine.fixes.fix import Finding
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree
from hybridwatch_engine_lab.studies import fix_cost, probe_cost, stepping
from hybridwatch_engine_lab.studies.fix_cost import adds_syncs, build_forms, costs, syncs_added
from hybridwatch_engine_lab.studies.is_prefilling_cost import SITE, _Unasked, per_step
from hybridwatch_engine_lab.studies.lossless import main
from hybridwatch_engine_lab.studies.stepping import (
    StepStretch,
    compute_speeds,
    paired_ratio,
    step_time_ratio,
    stretch,
    time_stretches,
)


def test_what_drifts_hits_both_sides_alike():
    drift = [1.0, 2.0, 4.0, 8.0, 16.0]
    found = paired_ratio([1.1 * value for value in drift], drift)
    assert (found.value, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert found.to_json() == {"ratio": found.value, "low": found.low, "high": found.high}


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rng = random.Random(3)
    held = 0
    for _ in range(100):
        contender = [1.02 * rng.gauss(1, 0.03) for _ in range(25)]
        found = paired_ratio(contender, [rng.gauss(1, 0.03) for _ in range(25)])
        held += found.low <= 1.02 <= found.high
        assert found.low <= found.value <= found.high
    assert 88 <= held <= 100


def test_rounds_must_be_pairs():
    with pytest.raises(ValueError, match="argument 2 is longer"):
        paired_ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one round"):
        paired_ratio([], [])


class Engine:
    """Gives each request so many tokens in each step, whatever it is asked."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.given = 0

    def add_request(self, *_):
        """Take it."""

    def has_unfinished_requests(self):
        return bool(self.steps)

    def step(self):
        tokens = self.steps.pop(0)
        self.given += tokens
        if not tokens:
            return []
        return [
            SimpleNamespace(request_id="a", outputs=[SimpleNamespace(token_ids=[1] * self.given)])
        ]


@pytest.mark.parametrize(
    ("given", "steps", "tokens"),
    [
        ((1, 1, 1, 1), 2, 2),
        ((0, 1, 1, 1, 1), 2, 2),  # it schedules ahead: the first step gives nothing yet
        ((0, 0, 2, 2, 2, 1), 2, 4),
    ],
)
def test_the_prompts_step_and_the_last_are_left_out(monkeypatch, given, steps, tokens):
    names = ("SamplingParams", "TokensPrompt")
    pretended = SimpleNamespace(**dict.fromkeys(names, lambda **asked: asked))
    monkeypatch.setitem(sys.modules, "vllm", pretended)
    found = stretch(Engine(*given), "x", rows=1)
    assert (len(found.seconds), found.tokens) == (steps, tokens)


def test_kept_answers_to_other_requests_are_refused(tmp_path):
    kept = tmp_path / "said"
    asked = {"model": "tiny", "requests": 40, "seed": 0}
    kept.write_text(json.dumps({"asked": asked, "tokens": []}))
    with pytest.raises(SystemExit, match=r"said: asked: expected .*'requests': 41.*'requests': 40"):
        main(["tiny", "--requests", "41", "--plain", str(kept)])


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


class SlowEngine:
    """Takes a second for a step, and another for each patch that is in."""

    slow = 1

    @staticmethod
    def patch():
        def slower(original):
            return original + 1

        return PatchSet(Patch(SlowEngine, "slow", slower))


@pytest.fixture
def made(monkeypatch):
    """Stretches in the order in which they are made."""
    order = []

    def stretch(_engine, name, rows, *_):
        order.append(name)
        return StepStretch((float(SlowEngine.slow),) * 4, 4 * rows)

    monkeypatch.setattr(stepping, "stretch", stretch)
    return order


def test_forms_take_turns_and_none_stays_in(made):
    found = time_stretches(
        None, {"stock": PatchSet(), "ours": SlowEngine.patch()}, rows=8, rounds=3
    )
    assert [name.split("-")[-1] for name in made] == [
        *("stock", "ours"),  # warms up
        *("ours", "stock", "stock", "ours", "ours", "stock"),
    ]
    assert {name: len(stretches) for name, stretches in found.items()} == {"stock": 3, "ours": 3}
    assert SlowEngine.slow == 1
    assert compute_speeds(found) == {
        "stock": {"step_seconds": 1.0, "tokens_per_second": 8.0},
        "ours": {"step_seconds": 2.0, "tokens_per_second": 4.0},
    }
    assert step_time_ratio(found, "ours", "stock") == {"ratio": 2.0, "low": 2.0, "high": 2.0}


def test_costs_are_reported_for_every_pair_that_there_is(made, monkeypatch):
    per_step = {"stock": 3.0, "upstream": 4.0, "ours": 4.0}
    monkeypatch.setattr(fix_cost, "count_syncs", lambda *_: per_step)
    forms = {"stock": PatchSet(), "upstream": SlowEngine.patch(), "ours": SlowEngine.patch()}
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


def test_reads_of_the_site_are_reported_per_step_and_no_others():
    told = {
        "reads_per_step": [3, 4, 3, 4],
        "sites": {
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}:454": 4,
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}:460": 2,
            f"vllm/v1/attention/backends/mamba_attn.py:{SITE}_more:454": 1,
            "vllm/v1/worker/gpu_model_runner.py:GPUModelRunner._sample:12": 8,
        },
    }
    assert per_step(told) == 1.5


def test_the_question_is_answered_without_a_read_and_all_else_is_torchs():
    torch, diff = ModuleType("torch"), object()
    vars(torch)["diff"] = diff
    unasked = _Unasked(torch)
    assert unasked.any(object()).item() is False
    assert unasked.diff is diff


class Probe:
    """Makes steps half as long again while it is on."""

    on = False

    def start(self):
        Probe.on = True

    def stop(self):
        Probe.on = False
        return {}


@pytest.fixture
def _engine(monkeypatch):
    def stretch(_engine, name, rows, *_):
        assert Probe.on is name.endswith("-on")
        return StepStretch((1.5 if Probe.on else 1.0,) * 3, 3 * rows)

    monkeypatch.setattr(stepping, "stretch", stretch)
    monkeypatch.setattr(probe_cost, "HostSyncProbe", Probe)


@pytest.mark.usefixtures("_engine")
def test_steps_with_the_probe_are_held_against_those_without():
    told = probe_cost.cost(None, rows=8, rounds=4)
    assert told["on"]["step_seconds"] == 1.5
    assert told["step_time"] == {"ratio": 1.5, "low": 1.5, "high": 1.5}
    assert not Probe.on


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize(("cuda", "status"), [(True, 1), (False, 0)])
def test_above_the_goal_is_bad_news_on_a_device_only(monkeypatch, tmp_path, cuda, status):
    answer = tmp_path / "answer.json"
    monkeypatch.setattr(probe_cost, "own_answer", lambda: answer.open("w", encoding="utf-8"))
    monkeypatch.setattr(probe_cost, "start", lambda *_: None)
    monkeypatch.setattr(probe_cost, "device_name", lambda: "a device")
    monkeypatch.setattr(probe_cost, "runs_on_cuda", lambda: cuda)
    assert probe_cost.main(["models/tiny-hybrid", "--rounds", "2"]) == status
    assert '"goal": 1.01' in answer.read_text(encoding="utf-8")
