"""The search for the highest rate that keeps an objective, on servers whose border is known."""

import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.measurement import objective as module
from hybridwatch.measurement.objective import compute_strain, search_objective, search_rate
from hybridwatch.metrics import SLO_REQUEST_RATE
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from tests.builders import a_comparison

ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "curated" / "highest-rate.toml", ROOT)
LOAD = SCENARIO.workload.generation
FULL, BORDER = 10.0, 8.0


def queue(border: float, noise: float = 0.0, seed: int = 0):
    """A server whose wait grows without bound towards twice the border, where the strain is 1."""
    rng = np.random.default_rng(seed)

    def strain(rate: float) -> float:
        left = 1 - rate / (2 * border)
        return (0.5 / left if left > 0 else 50.0) * math.exp(rng.normal(0, noise))

    return strain


def test_the_border_of_a_steady_server_is_found():
    assert search_rate(queue(BORDER), FULL, 5) == pytest.approx(BORDER, rel=0.003)
    assert search_rate(queue(BORDER * 0.91), FULL, 5) == pytest.approx(BORDER * 0.91, rel=0.003)


def test_every_load_halves_what_is_left():
    tried: list[float] = []

    def strain(rate: float) -> float:
        tried.append(rate)
        return rate / BORDER

    assert search_rate(strain, FULL, 4) == pytest.approx(BORDER)
    ratios = [abs(math.log2(later / before)) for before, later in pairwise(tried)]
    assert tried[0] == pytest.approx(5.0)  # halfway, in logarithms, from an eighth to twice of 10
    assert ratios == pytest.approx([1, 0.5, 0.25])


def test_a_server_that_keeps_all_or_none_is_said_to():
    assert search_rate(lambda _: 2.0, FULL, 5) == 0
    assert 18 < search_rate(lambda _: 0.5, FULL, 5) < 20  # the highest that was tried


def searches(border: float, seed: int, noise: float = 0.05) -> list[float]:
    """Ten trials of one build; the strain of each load scatters by a twentieth."""
    strain = queue(border, noise, seed)
    return [search_rate(strain, FULL, LOAD.search or 0) for _ in range(10)]


def verdict_of(contender: float, seed: int) -> Verdict:
    sides = (searches(BORDER, seed), searches(contender, seed + 1000))
    report = build_report(a_comparison(*({SLO_REQUEST_RATE: values} for values in sides)))
    (found,) = (one for one in report.comparisons if one.metric.id == SLO_REQUEST_RATE)
    return found.verdict


def test_noisy_searches_agree_with_the_border_in_the_middle():
    assert np.median([searches(BORDER, seed) for seed in range(40)]) == pytest.approx(8.0, rel=0.01)


def test_equal_servers_differ_as_seldom_as_chance_lets_them_and_a_lower_border_is_told():
    """Before a second look; the test allows one in twenty."""
    same = [verdict_of(BORDER, seed) for seed in range(60)]
    assert sum(one in {Verdict.REGRESSION, Verdict.IMPROVEMENT} for one in same) <= 5
    lower = [verdict_of(BORDER / 1.1, seed) for seed in range(60)]
    assert lower.count(Verdict.REGRESSION) >= 57


def result_of(*firsts: float, gap: float = 0.01) -> dict[str, Any]:
    """What the client writes of requests of three tokens."""
    count = len(firsts)
    return {"ttfts": [*firsts], "itls": [[gap, gap]] * count, "output_lens": [3] * count}


def test_nine_in_ten_must_keep_every_bound():
    times = result_of(*[0.05] * 17, 0.09, 3.0, 3.0)
    assert compute_strain(times, {"ttft": 0.1}) == pytest.approx(0.9)
    assert compute_strain(times, {"ttft": 0.1, "tpot": 0.005}) == pytest.approx(2.0)
    assert compute_strain(result_of(*[0.05] * 17, *[3.0] * 3), {"ttft": 0.1}) == pytest.approx(30)


@pytest.fixture
def trial(monkeypatch):
    """A trial at whose rates the first token takes as many milliseconds as 10 times the rate."""
    story: list[Any] = []
    engine = SimpleNamespace(setting="as wanted", settle=story.append)

    def run_load(_trial, load):
        story.append((load.request_rate, load.max_concurrency))
        return result_of(*[load.request_rate / 100] * 10)

    monkeypatch.setattr(module, "run_load", run_load)
    return SimpleNamespace(engine=engine, scenario=SCENARIO, is_warmup=False, story=story)


def test_a_trial_keeps_what_it_tried_and_starts_each_load_alike(trial):
    (sample,), kept = search_objective(trial, {"request_throughput": FULL})
    assert sample.metric == SLO_REQUEST_RATE
    assert sample.values == pytest.approx((10.0,))
    tried = kept["slo_search"]
    assert [rate / 10 for rate, _ in tried] == [pytest.approx(strain) for _, strain in tried]
    assert trial.story == [
        step for rate, _ in tried for step in ("as wanted", (rate, LOAD.prompts))
    ]
    assert len(tried) == LOAD.search


def test_a_warm_up_and_a_load_without_search_search_nothing(trial):
    trial.is_warmup = True
    assert search_objective(trial, {}) == ((), {})
    plain = LOAD.model_copy(update={"search": None})
    workload = SCENARIO.workload.model_copy(update={"generation": plain})
    trial.is_warmup, trial.scenario = False, SCENARIO.model_copy(update={"workload": workload})
    assert search_objective(trial, {}) == ((), {})
