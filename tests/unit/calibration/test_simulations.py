"""Simulations that write pages or figures of their own say what whole reports say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.analysis.report import Terms, build_report, find_reason, report_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, learned_noise
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.metrics import CURVE_AREA
from hybridwatch.records.run import Run
from hybridwatch.records.store import write_run
from hybridwatch_lab.calibration import nights, reports, run_worlds
from hybridwatch_lab.calibration.families import correlations_in
from hybridwatch_lab.calibration.figure import at_most, share
from hybridwatch_lab.calibration.laboratory import Laboratory
from hybridwatch_lab.calibration.simulated import SimulatedSession, rates_run
from hybridwatch_lab.calibration.sweeps import CHANGES, even, page, simulated, slower, tilted
from tests.builders import a_run


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("trials", reports.TRIALS)
def test_verdicts_are_those_of_whole_reports(trials, known) -> None:
    rng = np.random.default_rng(3)
    levels = np.exp(0.05 * rng.standard_normal((reports.RUN_METRICS, FEWEST_RUNS + 2)))
    old, new, earlier = reports.unchanged(rng, levels, trials)
    new[0] *= 1.5
    runs = [rates_run([one, one], SimulatedSession(trials)) for one in (old, new)]
    subjects = report_between(OneSide(runs[0], 0), OneSide(runs[0], 1)).comparisons
    series = np.column_stack([earlier, np.median(old, axis=1)]).tolist()
    noises = learned_noise(zip([one.metric for one in subjects], series, strict=True))
    names = {
        (one.metric.id, one.statistic): noise
        for one, noise in zip(subjects, noises, strict=True)
        if noise is not None
    }
    sides = OneSide(runs[0], 0), OneSide(replace(runs[1], id="11111111"), 0)
    whole = report_between(*sides, Terms(noise=names if known else {}))
    short = reports.report_on_runs(old, new, earlier, learned_noise if known else None)
    assert [c.verdict for c in short.comparisons] == [c.verdict for c in whole.comparisons]
    assert [c.p_holm for c in short.comparisons] == [c.p_holm for c in whole.comparisons]


LAB = Laboratory(seed=3, quick=True, on_progress=lambda _: None)


def test_a_rule_that_trusts_trials_alone_is_caught() -> None:
    """As the rules were once: noise between runs unknown, and the trials believed."""
    found = reports.of_two_runs(LAB, lambda series: [0.0] * len(series))
    refuted = {one.id for one in found.figures if one.refuted}
    assert {
        f"two_runs.stopped.noise_{noise}.trials_{trials}"
        for noise in (0.03, 0.05)
        for trials in reports.TRIALS
    } <= refuted


def test_a_rule_that_takes_the_usual_step_for_all_noise_is_caught() -> None:
    """As the rules were before version 7: it cannot know of long tails, spikes and modes."""
    found = run_worlds.of_unlike_runs(LAB, run_worlds.five_median_steps)
    refuted = {one.id.rpartition(".")[2] for one in found.figures if one.refuted}
    modes = {world for world in run_worlds.WORLDS if world.startswith("two modes")}
    assert {*modes, "spikes, 1 run in 20"} <= refuted


TIMED = ("ttft", "itl", "e2el", "tpot", "output_throughput", "metadata_build_time")


def run_with(shared: float, blocks: int = 10):
    rng = np.random.default_rng(3)

    def side():
        common = rng.standard_normal(blocks)
        own = rng.standard_normal((len(TIMED), blocks))
        noise = 0.03 * (np.sqrt(shared) * common + np.sqrt(1 - shared) * own)
        return {name: tuple(np.exp(row).tolist()) for name, row in zip(TIMED, noise, strict=True)}

    return a_run(side(), side())


@pytest.mark.parametrize(("shared", "least", "most"), [(0.0, 0.0, 0.4), (1.0, 0.99, 1.0)])
def test_noise_in_common_is_seen_and_noise_of_their_own_is_not(tmp_path: Path, shared, least, most):
    write_run(tmp_path, run_with(shared))
    (found,) = correlations_in(tmp_path)
    assert least <= found <= most


def test_a_run_of_few_blocks_says_nothing(tmp_path: Path):
    write_run(tmp_path, run_with(1.0, blocks=6))
    assert list(correlations_in(tmp_path)) == []


def verdict_of(report: Report) -> Verdict:
    return next(one.verdict for one in report.comparisons if one.metric.id == CURVE_AREA)


@pytest.mark.parametrize(
    ("pace", "right"),
    [
        (even, {Verdict.EQUIVALENT, Verdict.WORSE_WITHIN}),
        (slower(0.25), {Verdict.REGRESSION}),
    ],
)
def test_what_is_plain_is_judged_right(pace, right):
    rng = np.random.default_rng(1)
    assert {verdict_of(simulated(pace, 0.01, rng)) for _ in range(5)} <= right


def test_curves_that_cross_are_found_to():
    report = simulated(tilted, 0.01, np.random.default_rng(1))
    assert report.tradeoff is not None
    assert len(report.tradeoff.crossings) == 1


def test_equal_engines_seldom_have_a_place_where_one_is_above():
    rng = np.random.default_rng(2)
    reports = [simulated(even, 0.03, rng) for _ in range(40)]
    alarms = sum(bool(report.tradeoff and report.tradeoff.stretches) for report in reports)
    # Were each of the places tested at 5 % by itself, about one report in six would have some.
    assert alarms <= 5


def test_page_says_how_it_was_made_and_is_the_same_again():
    text = page(7, 1, lambda _line: None)
    assert "sweeps --seed 7 --reports 1 --write" in text
    assert text.count("\n| ") == 1 + 3 * len(CHANGES)
    assert page(7, 1, lambda _line: None) == text


def on_starts(run: Run, starts: Sequence[int]) -> Run:
    """The same run, whose blocks were made on these starts of the engines."""
    if not starts:
        return run
    sides = [iter(starts), iter(starts)]
    trials = tuple(replace(one, start=next(sides[one.side])) for one in run.trials)
    return replace(run, trials=trials)


@pytest.mark.parametrize(("blocks", "starts"), [(7, 1), (10, 1), (7, 3), (10, 6)])
@pytest.mark.parametrize("slower", [1.0, nights.SLOWER])
def test_nights_are_judged_as_whole_reports_are(blocks, starts, slower) -> None:
    seen = set()
    for seed in range(8):
        world = nights.World(blocks, 0.01, slower, starts)
        made = nights.make_report(np.random.default_rng(seed), world)
        rng = np.random.default_rng(seed)
        looks = [world.drawn(rng)]
        first = on_starts(rates_run(looks[0], SimulatedSession(blocks)), world.numbers(1))
        assert bool(find_reason(first)) is made.again
        if made.again:
            looks.append(world.drawn(rng))
        sides = [np.hstack([look[side] for look in looks]) for side in (0, 1)]
        made_run = rates_run(sides, SimulatedSession(blocks * len(looks)))
        run = on_starts(made_run, world.numbers(len(looks)))
        report = build_report(replace(run, second_look=2 * blocks if made.again else None))
        reds = [one.verdict is Verdict.REGRESSION for one in report.comparisons]
        assert list(made.twice if made.again else made.once) == reds
        seen.add(made.again)
    assert len(seen) == 2 or slower > 1


@pytest.mark.parametrize(("starts", "kept"), [(1, False), (6, True)])
def test_six_starts_keep_the_promise_of_a_report_and_one_start_does_not(starts, kept) -> None:
    rng, world = np.random.default_rng(1), nights.World(12, 0.04, starts=starts)
    made = [nights.make_report(rng, world) for _ in range(120)]
    red = [any(one.once) for one in made]
    assert share("red", "red reports", red, at_most(0.05)).refuted is not kept


def test_a_second_look_keeps_the_promise_of_nights_and_one_look_does_not() -> None:
    rng, world = np.random.default_rng(1), nights.World(7, 0.0)
    made = [nights.make_report(rng, world) for _ in range(nights.NIGHTS * nights.SCENARIOS)]
    once = nights.rates_of([any(one.once) for one in made])
    twice = nights.rates_of([any(one.twice) for one in made])
    assert once.night > 0.1
    assert share("red", "red nights", once.nights, nights.BOUND).refuted
    assert twice.night <= 1 / nights.NIGHTS
    either = [any(one.once) or any(one.twice) for one in made]
    assert share("red", "red nights", nights.rates_of(either).nights, nights.BOUND).refuted
