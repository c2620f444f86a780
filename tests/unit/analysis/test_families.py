"""A lost answer does not drown in speed tests, nor a slow-down in what only warns."""

from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.gate import gate, gate_all
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, learned_noise
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Family, Report, Verdict
from hybridwatch.metrics import find_metric
from hybridwatch.reports.sentence import notes, rules, unsure
from hybridwatch_lab.calibration import families
from tests.builders import Trials, a_run, noisy

TIMED = (
    "ttft",
    "itl",
    "e2el",
    "tpot",
    "output_throughput",
    "request_throughput",
    "metadata_build_time",
)
LENIENT = Policy(
    (
        Rule("accuracy.*"),
        Rule("ttft"),
        Rule("itl", action=Action.WATCH),
        Rule("*", action=Action.WARN),
    )
)


def lost(number: int, of: int = 200):
    """A run in which some answers are lost, none won, and nothing else moves."""
    speed = {name: noisy(1.0, 12, 0.02, seed) for seed, name in enumerate(TIMED)}
    same = {name: noisy(1.0, 12, 0.02, seed + 50) for seed, name in enumerate(TIMED)}
    right = "1" * of
    tasks = {f"accuracy.task{number}": right for number in range(3)}
    wrong = {**tasks, "accuracy.task0": "0" * number + "1" * (of - number)}
    return a_run({**speed, **tasks}, {**same, **wrong})


def of(report: Report, metric: str) -> Comparison:
    return next(c for c in report.comparisons if c.metric.id == metric)


def test_eight_lost_answers_of_200_stop_the_gate_next_to_ten_speed_tests() -> None:
    report = build_report(lost(8))
    found = of(report, "accuracy.task0")
    assert report.tests == 13
    assert found.p_value == pytest.approx(0.5**8)
    assert found.verdict is Verdict.REGRESSION
    assert gate(report).reasons == ("accuracy.task0 mean: regression",)


def test_families_are_reported_with_their_numbers() -> None:
    report = build_report(lost(8))
    assert report.families == (Family("accuracy", 3), Family("speed", report.tests - 3))
    assert f"3 of accuracy, {report.tests - 3} of speed." in rules(report)[0]
    assert build_report(a_run({}, {})).families == ()


def test_each_test_is_adjusted_with_its_own_family() -> None:
    found = of(build_report(lost(8)), "accuracy.task0")
    assert found.family == "accuracy"
    assert found.p_holm == pytest.approx(3 * 0.5**8)


def judged_by(policy: Policy, effect: float = 1.0) -> Report:
    base = {name: noisy(1.0, 12, 0.02, seed) for seed, name in enumerate(TIMED)}
    slow = {name: noisy(1.0, 12, 0.02, seed + 50) for seed, name in enumerate(TIMED)}
    slow["ttft"] = noisy(effect, 12, 0.03, 77)
    run = a_run(base, slow)
    return report_between(OneSide(run, 0), OneSide(run, 1), Terms(policy=policy))


def test_what_only_warns_or_is_watched_dilutes_nobody() -> None:
    report = judged_by(LENIENT)
    assert {family.name: family.tests for family in report.families} == {
        "speed": 2,
        "speed (only warned of)": 6,
        "speed (watched)": 2,
    }
    together, apart = of(judged_by(STRICT), "ttft"), of(report, "ttft")
    assert apart.p_value == together.p_value
    assert apart.p_holm is not None
    assert together.p_holm is not None
    assert apart.p_holm <= together.p_holm


@pytest.mark.parametrize("number", [5, 8])
def test_doubts_on_accuracy_advise_documents_and_never_trials(number) -> None:
    report = build_report(lost(number))
    for found in report.comparisons:
        if found.metric.id.startswith("accuracy."):
            assert not [doubt for doubt in found.doubts if "trials" in doubt]
    few = build_report(lost(2, of=100))
    assert any("trials" in note for note in notes(few)) is False


def test_a_lost_answer_that_is_open_asks_for_more_documents() -> None:
    """Lost beyond chance alone, and one of three tasks: p .03 is .09 then."""
    found = of(build_report(lost(5)), "accuracy.task0")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.doubts == (
        "5 answers lost, none won: read the answers that flipped.",
        "Significant alone (p 0.031), but not as one of 3 tests: repeat with more documents.",
    )


def two_runs(seed: int, noise: float = 0.03) -> Report:
    """Two runs of one engine, each with a luck of its own in every metric."""
    rng = np.random.default_rng(seed)

    def side(number: int):
        luck = np.exp(rng.normal(0, noise, len(TIMED)))
        return {
            name: tuple((at * np.exp(rng.normal(0, 0.005, 10))).tolist())
            for name, at in zip(TIMED, luck, strict=True)
        }

    old, new = a_run(side(0)), replace(a_run(side(1)), id="22222222")
    return report_between(OneSide(old, 0), OneSide(new, 0))


def test_two_runs_of_an_unchanged_engine_only_warn() -> None:
    """Nobody knows how much runs differ: trials of either tell nothing of it."""
    reports = [two_runs(seed) for seed in range(20)]
    assert not any(report.bad_news for report in reports)
    assert all(gate(report).passed for report in reports)
    assert sum(bool(gate(report).warnings) for report in reports) > 10
    warnings = gate_all(reports).warnings
    assert warnings
    assert all("two runs, and too few earlier runs" in line for line in warnings)


def test_the_report_says_why_a_gate_only_warns_between_two_runs() -> None:
    report = next(r for r in map(two_runs, range(20)) if gate(r).warnings)
    assert "measure interleaved, both builds in one run, or keep 20 runs" in unsure(report)
    assert any("measure interleaved" in note for note in notes(report))


@pytest.mark.parametrize("trials", [7, 20])
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.05])
def test_two_runs_of_an_unchanged_engine_rarely_stop_with_what_was_learned(noise, trials) -> None:
    """Nine metrics, noise learned from 20 runs; at most 5 % of 100, and what chance adds."""
    rng = np.random.default_rng(7)
    stopped = 0
    for _ in range(100):
        levels = np.exp(rng.normal(0, noise, (FEWEST_RUNS + 2, len(TIMED))))
        trial = 1 + 0.005 * rng.standard_normal((2, len(TIMED), trials))
        old, new = (
            a_run(
                {
                    name: tuple((level * some).tolist())
                    for name, level, some in zip(TIMED, levels[side], trial[side], strict=True)
                },
                id=f"{side:08x}",
            )
            for side in range(2)
        )
        of_all = [(find_metric(name), levels[2:, at].tolist()) for at, name in enumerate(TIMED)]
        known = {
            (metric.id, statistic): noise
            for (metric, _), noise in zip(of_all, learned_noise(of_all), strict=True)
            for statistic in ("median", "p99")
            if noise is not None
        }
        stopped += not gate(
            report_between(OneSide(old, 0), OneSide(new, 0), Terms(noise=known))
        ).passed
    assert stopped <= 11


def test_with_learned_noise_two_runs_may_stop() -> None:
    old, new = a_run({"tpot": noisy(1.0, 12, 0.005)}), a_run({"tpot": noisy(1.2, 12, 0.005, 2)})
    sides = OneSide(old, 0), OneSide(replace(new, id="22222222"), 0)
    assert gate(report_between(*sides)).passed
    known = Terms(noise={("tpot", "median"): 0.01})
    assert not gate(report_between(*sides, known)).passed


def test_contracts_answers_and_exact_counts_of_two_runs_stop_all_the_same() -> None:
    good: dict[str, Trials] = {
        "contract.wrong_tokens": (0.0,),
        "accuracy.recall": "1" * 200,
        "host_syncs_per_step": (3.0,) * 5,
    }
    bad: dict[str, Trials] = {
        "contract.wrong_tokens": (2.0,),
        "accuracy.recall": "0" * 20 + "1" * 180,
        "host_syncs_per_step": (5.0,) * 5,
    }
    report = report_between(OneSide(a_run(good), 0), OneSide(a_run(bad, id="22222222"), 0))
    assert [line.partition(" ")[0] for line in gate(report).reasons] == list(good)


def test_the_calibration_of_families_is_a_command_and_says_what_it_simulated(
    monkeypatch, capsys
) -> None:
    monkeypatch.setattr("sys.argv", ["families", "--reports", "3", "--seed", "1"])
    assert families.main() == 0
    noise, first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert noise.endswith("of their noise in common (median)")
    assert first.startswith("3 reports, 12 timed metrics at CV 3 %, 3 tasks of 200 documents")
    assert "at CV 15 %" in second
    assert third.startswith("+5 % in one of 9 metrics, 7 blocks, 0 % of the noise in common: found")
