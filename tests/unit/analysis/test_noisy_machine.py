"""A machine that its run calls noisy: times are red or green only with the processor time."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis import judge
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.machine_state import blocks_missing
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.signed_rank import flip_p
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import find_metric
from hybridwatch.records.run import MachineState, Run
from tests.builders import a_run

WORK = "engine_cpu_time"
BLOCKS = 10


def session(
    effects: Mapping[str, float], restless: float = 0.3, blocks: int = BLOCKS, seed: int = 1
) -> Run:
    """A run in turn; each metric has its effect and hardly any noise, the machine a lot."""
    rng = np.random.default_rng(seed)

    def side(number: int) -> dict[str, list[float]]:
        return {
            name: (effect**number * np.exp(0.01 * rng.standard_normal(blocks))).tolist()
            for name, effect in effects.items()
        }

    run = a_run(side(0), side(1))

    def around() -> MachineState:
        return MachineState(0.009, 0.01 * float(np.exp(restless * rng.standard_normal())), 0.3)

    return replace(run, trials=tuple(replace(t, surroundings=around()) for t in run.trials))


def of(report: Report, metric: str) -> Comparison:
    return next(c for c in report.comparisons if c.metric.id == metric)


def verdicts(run: Run) -> dict[str, Verdict]:
    return {c.metric.id: c.verdict for c in build_report(run).comparisons}


def test_a_time_alone_is_held_back_and_says_so() -> None:
    report = build_report(session({"tpot": 1.2, WORK: 1.0}))
    found = of(report, "tpot")
    assert found.restless
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any(doubt.startswith("Held back: on a restless machine") for doubt in found.doubts)


def test_a_gate_warns_of_a_time_that_was_held_back() -> None:
    result = gate(build_report(session({"tpot": 1.2, WORK: 1.0})))
    assert result.passed
    (warning,) = result.warnings
    assert warning.startswith("tpot median: inconclusive, worse, measured on a noisy machine")


def test_a_gate_is_silent_about_what_became_better_or_stayed_there() -> None:
    assert not gate(build_report(session({"tpot": 0.8, WORK: 1.0}))).warnings
    assert not gate(build_report(session({"tpot": 1.0, WORK: 1.0}))).warnings


RED, BETTER, OPEN = Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        pytest.param(
            {"tpot": 1.2, "output_throughput": 1.0, WORK: 1.1},
            {"tpot": RED, "output_throughput": OPEN, WORK: RED},
            id="a time that goes with the processor time",
        ),
        pytest.param({WORK: 1.1, "tpot": 1.0}, {WORK: RED}, id="processor time alone, worse"),
        pytest.param({WORK: 0.9, "tpot": 1.0}, {WORK: BETTER}, id="processor time alone, better"),
        pytest.param({"tpot": 1.2, WORK: 0.9}, {"tpot": OPEN, WORK: BETTER}, id="against it"),
        # That nothing can be seen through the noise is no proof, however small the noise looks.
        pytest.param({"tpot": 1.0, WORK: 1.0}, {"tpot": OPEN}, id="a time is never the same"),
        pytest.param(
            {"host_syncs_per_step": 1.2, "acceptance_length": 0.8, "tpot": 1.2, WORK: 1.0},
            {"host_syncs_per_step": RED, "acceptance_length": RED, "tpot": OPEN},
            id="counts and tokens as ever",
        ),
    ],
)
def test_the_processor_time_decides_on_a_noisy_machine(effects, told) -> None:
    found = verdicts(session(effects))
    assert {name: found[name] for name in told} == told


def test_on_a_quiet_machine_a_time_alone_is_a_regression() -> None:
    found = verdicts(session({"tpot": 1.2, WORK: 1.0}, restless=0.01))
    assert found == {"tpot": RED, WORK: Verdict.EQUIVALENT}


def test_without_processor_time_nothing_timed_is_red() -> None:
    report = build_report(session({"tpot": 1.5, "output_throughput": 0.6}))
    assert {c.verdict for c in report.comparisons} == {Verdict.INCONCLUSIVE}
    assert {c.p_adjusted for c in report.comparisons} == {1.0}


def test_fewer_than_six_blocks_are_held_back() -> None:
    report = build_report(session({"tpot": 1.5, WORK: 1.5}, blocks=5, seed=2))
    assert {c.verdict for c in report.comparisons} == {Verdict.INCONCLUSIVE}
    assert all(any("Held back" in doubt for doubt in c.doubts) for c in report.comparisons)
    assert all(c.interval is not None for c in report.comparisons)


def test_two_runs_stand_by_the_noise_that_was_learned() -> None:
    run = session({"tpot": 1.2, WORK: 1.2})
    other = replace(run, id="22222222")
    report = report_between(OneSide(run, 0), OneSide(other, 1))
    assert not any(c.restless for c in report.comparisons)


@pytest.mark.parametrize(
    ("metric", "timed"),
    [
        ("tpot", True),
        ("output_throughput", True),
        ("host_sync_share", True),
        (WORK, True),
        ("acceptance_length", False),
        ("acceptance_rate.position_1", False),
        ("host_syncs_per_step", False),
        ("accuracy.recall", False),
    ],
)
def test_what_hangs_on_the_clock(metric: str, timed: bool) -> None:
    assert find_metric(metric).hangs_on_the_clock is timed


def share_changed(reports: int = 100) -> float:
    """Share of restless reports on an unchanged engine in which anything is red or better."""
    rng = np.random.default_rng(5)
    changed = 0
    for _ in range(reports):

        def side() -> dict[str, list[float]]:
            common = 0.15 * rng.standard_normal(7)
            return {
                name: np.exp(common * part + 0.04 * rng.standard_normal(7)).tolist()
                for name, part in (("tpot", 1.0), ("ttft", 1.0), ("e2el", 1.0), (WORK, 0.3))
            }

        run = a_run(side(), side())
        seen = tuple(
            MachineState(0.009, 0.01 * float(np.exp(0.3 * rng.standard_normal())))
            for _ in run.trials
        )
        trials = (replace(t, surroundings=s) for t, s in zip(run.trials, seen, strict=True))
        found = build_report(replace(run, trials=tuple(trials))).comparisons
        changed += any(
            c.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT} for c in found if c.restless
        )
    return changed / reports


def test_an_unchanged_engine_is_red_or_better_in_at_most_one_report_of_twenty() -> None:
    """100 reports; .11 is what chance adds to .05 in one case of a hundred."""
    assert share_changed() <= 0.11


def test_the_bound_sees_a_rule_that_asks_all_times_at_once(monkeypatch) -> None:
    """With the level of each direction, as on a quiet machine, either comes by chance too often."""
    monkeypatch.setattr(judge, "noisy_p", lambda _metrics, rows: flip_p(rows))
    assert share_changed(200) > 0.05


@pytest.mark.parametrize(("blocks", "missing"), [(7, 13), (10, 10), (20, 0), (25, 0)])
def test_a_restless_machine_asks_for_twenty_blocks(blocks: int, missing: int) -> None:
    assert blocks_missing(session({WORK: 1.0}, blocks=blocks, seed=2)) == missing
    assert blocks_missing(session({WORK: 1.0}, restless=0.01, blocks=blocks)) == 0


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_what_was_measured_has_no_say_in_how_much_is_measured(effect: float) -> None:
    assert blocks_missing(session({"tpot": effect, WORK: effect}, seed=2)) == 10


def test_sides_that_change_places_ask_for_as_many_blocks() -> None:
    run = session({WORK: 1.0}, seed=2)
    turned = replace(run, trials=tuple(replace(one, side=1 - one.side) for one in run.trials))
    assert blocks_missing(run) == blocks_missing(turned) == 10
