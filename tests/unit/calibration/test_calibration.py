"""The short calibration: our rules keep their bounds, and rules that are wrong are caught."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import HistoryError
from hybridwatch_lab.calibration import (
    __main__ as command,
)
from hybridwatch_lab.calibration import (
    accuracy,
    asv_files,
    comparisons,
    figure,
    laboratory,
    online,
    reports,
    rivals,
    run_worlds,
    sequential_runs,
    simulated,
    speed,
    synthetic,
)
from hybridwatch_lab.calibration.__main__ import EXPERIMENTS
from hybridwatch_lab.calibration.figure import at_least, at_most
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection
from hybridwatch_lab.calibration.rivals import (
    Alarm,
    Detector,
    divisive,
    kernel_segments,
    steps_of_asv,
)
from hybridwatch_lab.calibration.simulated import RecordedNoise, SimulatedSession, rates_run

HISTORIES = {
    kind.value: simulated.series(
        kind, simulated.shape(kind, np.random.default_rng(index), 150), 0.01, 1e-3
    )
    for index, kind in enumerate(
        (RecordedNoise.GAUSSIAN, RecordedNoise.HEAVY, RecordedNoise.BIMODAL)
    )
}


@pytest.fixture
def lab() -> Laboratory:
    return Laboratory(seed=3, quick=True, on_progress=lambda _: None)


def on_real_noise(lab: Laboratory) -> LabSection:
    return online.on_real_noise(lab, HISTORIES)


def of_asv_files(lab: Laboratory) -> LabSection:
    return asv_files.of_asv_files(lab, HISTORIES)


def of_real_runs(lab: Laboratory) -> LabSection:
    return run_worlds.of_real_runs(lab, HISTORIES)


def on_held_back(lab: Laboratory) -> LabSection:
    return online.on_held_back(lab, HISTORIES)


def refuted(section: LabSection) -> set[str]:
    """Figures that even few simulations show to break their bound."""
    return {one.id for one in section.figures if one.refuted}


@pytest.mark.parametrize(
    "experiment",
    [*EXPERIMENTS, of_asv_files, of_real_runs, on_real_noise, on_held_back],
    ids=lambda one: one.__name__,
)
def test_no_bound_is_refuted_by_a_short_calibration(experiment, lab) -> None:
    section = experiment(lab)
    assert section.figures or section.tables
    assert refuted(section) == set()


# Rules that are wrong must not pass the same experiments.


def uncontrolled(drafts, level):
    """No false-discovery control, no margin: red whenever a test alone says so."""
    return tuple(
        replace(one, p_adjusted=one.p_value, p_holm=one.p_value, verdict=Verdict.REGRESSION)
        if one.p_value is not None and one.p_value < level
        else one
        for one in reports.together(drafts, level)
    )


def blind(run):
    """Never finds anything."""
    report = build_report(run)
    comparisons = tuple(
        replace(one, p_adjusted=1.0, verdict=Verdict.INCONCLUSIVE) for one in report.comparisons
    )
    return replace(report, comparisons=comparisons)


def test_a_rule_without_control_is_caught(lab) -> None:
    found = refuted(reports.of_equal_sides(lab, uncontrolled))
    assert found == {"report.any_red", "report.gate"}


def test_a_rule_that_never_finds_is_caught(lab) -> None:
    assert "ab.power" in refuted(comparisons.of_one_metric(lab, blind))
    assert "accuracy.called" in refuted(accuracy.of_answers(lab, blind))


def test_a_level_is_broken_by_an_interval_beyond_it_alone() -> None:
    """An exact test spends its level, so half of all estimates lie beyond it."""
    estimates = {
        reds: figure.share("x", "any red", [True] * reds + [False] * (400 - reds), level)
        for reds in (16, 24, 34)
        for level in [figure.at_level(0.05)]
    }
    assert {reds: one.met for reds, one in estimates.items()} == {16: True, 24: True, 34: False}
    assert not replace(estimates[24], bound=at_most(0.05)).met


def test_looks_without_a_boundary_are_caught() -> None:
    """Judged at 0.05 each time, an unchanged build finds something at some look too often."""
    rng = np.random.default_rng(4)
    setting = sequential_runs.SequentialSetting("null", 1, 0.08)
    found = [sequential_runs.follow(setting, rng, lambda _: 0.05).found for _ in range(150)]
    assert figure.share("x", "found at any look", found, at_most(0.05)).refuted


def test_a_detector_that_alarms_at_random_is_caught(lab) -> None:
    def nervous(values):
        rng = np.random.default_rng(len(values))
        return (Alarm(int(rng.integers(len(values)))),)

    found = refuted(online.on_real_noise(lab, HISTORIES, nervous))
    assert {"history.real.false_alarms", "history.real.false_confirmed"} <= found
    found = refuted(synthetic.on_finished_series(lab, nervous))
    assert found == {"history.synthetic.gain", "history.synthetic.null"}


def test_a_detector_that_never_alarms_is_caught(lab) -> None:
    def silent(_values):
        return ()

    section = online.on_real_noise(lab, HISTORIES, silent)
    assert {"history.real.hit", "history.real.hit_confirmed"} <= refuted(section)
    assert any(one.id == "history.real.delay" and not one.met for one in section.figures)
    assert "history.synthetic.gain" in refuted(synthetic.on_finished_series(lab, silent))


# The apparatus itself.


def test_the_same_seed_gives_the_same_figures_whatever_ran_before(lab) -> None:
    first = synthetic.on_finished_series(lab, rivals.against_rolling_median)
    online.on_known_noise(lab, rivals.against_days)
    assert synthetic.on_finished_series(lab, rivals.against_rolling_median) == first
    other = replace(lab, seed=4)
    assert synthetic.on_finished_series(other, rivals.against_rolling_median) != first


@pytest.mark.parametrize("kind", list(RecordedNoise))
def test_noise_is_what_it_says_and_the_same_with_a_step(kind) -> None:
    drawn = simulated.shape(kind, np.random.default_rng(1), 20_000)
    assert abs(drawn.mean()) < 0.05
    about_line = drawn - np.polyval(np.polyfit(np.arange(20_000), drawn, 1), np.arange(20_000))
    assert about_line.std() == pytest.approx(float(kind is not RecordedNoise.CONSTANT), abs=0.08)
    flat = simulated.series(kind, drawn, 0.02)
    stepped = simulated.series(kind, drawn, 0.02, simulated.step(20_000, 10_000, 0.05))
    assert np.array_equal(flat[:10_000], stepped[:10_000])
    ratio = stepped[10_000:].mean() / flat[10_000:].mean()
    assert ratio == pytest.approx(1.05, abs=0.001)


def test_autocorrelation_is_as_declared() -> None:
    drawn = simulated.shape(RecordedNoise.AUTOCORRELATED, np.random.default_rng(1), 20_000)
    assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0.7, abs=0.02)


def test_sides_take_turns() -> None:
    session = SimulatedSession(4)
    assert session.moments(0).tolist() == [0, 3, 4, 7]
    assert session.moments(1).tolist() == [1, 2, 5, 6]
    drifted = SimulatedSession(4, drift=0.7).disturbed(np.ones((1, 4)), 0, np.random.default_rng(1))
    assert drifted == pytest.approx(np.array([[1.0, 1.3, 1.4, 1.7]]))


@pytest.mark.parametrize("pairs", [6, 9, 10, 20])
def test_reports_of_many_metrics_have_the_verdicts_that_ship(pairs) -> None:
    session = SimulatedSession(pairs)
    whole = np.exp(0.03 * np.random.default_rng(1).standard_normal((8, 2 * pairs)))
    whole[:4, session.moments(1)] *= np.array([[1.2], [0.8], [1.1], [1.03]])
    whole[4] = 1.0
    sides = [whole[:, session.moments(side)] for side in range(2)]
    run = rates_run(sides, session)

    def judged(report):
        return [
            (c.verdict, c.effect, c.p_value, c.p_adjusted, c.p_holm, c.equivalence_p)
            for c in report.comparisons
        ]

    assert judged(reports.report_on([100 * side for side in sides])) == judged(build_report(run))


def test_accuracy_loses_what_it_says() -> None:
    left, right = (
        np.array(side) for side in accuracy.two_sides(np.random.default_rng(1), 200_000, 0.06, 0.02)
    )
    assert np.mean(left & ~right) == pytest.approx(0.05, abs=0.002)
    assert np.mean(right & ~left) == pytest.approx(0.03, abs=0.002)


def test_growing_series_tell_delay_luck_and_distinct_alarms() -> None:
    """A detector that sees the step after two points and confirms it after four."""

    def late(values):
        if values[-1] == values[0]:
            return (Alarm(20), Alarm(22)) if len(values) >= 50 else ()
        after = int(np.sum(values != values[0]))
        return (Alarm(71, confirmed=after >= 4),) if after >= 2 else ()

    quiet = np.ones(100)
    found = online.examine_block(late, quiet, online.with_step(quiet))
    assert (found.delay, found.delay_confirmed) == (1, 3)
    assert (found.luck, found.false_alarms, found.false_confirmed) == (False, 1, 1)


@pytest.mark.parametrize(
    ("rule", "change", "least"),
    [
        (rivals.against_previous, 0.11, 2),
        (rivals.against_days, 0.21, 4),
        (rivals.against_rolling_median, 0.06, 11),
        (rivals.sliding_t, 0.03, 24),
        (rivals.outside_fences, 0.03, 32),
    ],
)
def test_rivals_see_a_clear_step_only(rule, change, least) -> None:
    quiet = np.exp(0.003 * np.random.default_rng(2).standard_normal(80))
    assert rule(quiet) == ()
    assert Alarm(40) in rule(quiet * simulated.step(80, 40, change))
    assert rule(quiet[: least - 1]) == ()


def test_the_fields_rules_for_two_builds_see_what_they_say() -> None:
    base = np.linspace(0.99, 1.01, 9)
    for rule, change in zip(rivals.RATE_RULES.values(), (0.025, 0.02, 0.12), strict=True):
        assert not rule(base, base)
        assert rule(base, base * (1 + change))
        assert rule(base, base * (1 - change))
    assert not rivals.ranks_and_factor(base, base * 1.09)
    drop, slip = Pairs(1000, 80, 10), Pairs(1000, 50, 20)
    assert rivals.two_sigma(drop, 0.75)
    assert not rivals.two_sigma(slip, 0.75)
    assert rivals.relative_tolerance(drop, 0.75)
    assert not rivals.relative_tolerance(drop, 0.9)


def test_shares_and_rates_and_medians_carry_honest_intervals() -> None:
    half = figure.share("x", "x", [True, False] * 50)
    assert (half.value, half.low, half.high) == pytest.approx((0.5, 0.4038, 0.5962), abs=1e-4)
    none = figure.rate("x", "x", 0, 1000, 10)
    assert (none.value, none.low, none.high) == pytest.approx((0, 0, 3.6889), abs=1e-4)
    middle = figure.median("x", "x", list(range(101)))
    assert (middle.value, middle.low, middle.high) == (50, 40, 60)
    better = figure.gain("x", "x", [True] * 60 + [False] * 40, [True] * 10 + [False] * 90)
    assert better.low < better.value == 0.5 < better.high


def test_bounds_are_met_by_the_estimate_and_refuted_by_the_interval() -> None:
    few = figure.share("x", "x", [True] + [False] * 9, at_most(0.05))
    assert few.met is False
    assert not few.refuted
    many = figure.share("x", "x", [True] * 100 + [False] * 900, at_most(0.05))
    assert many.refuted
    assert figure.share("x", "x", [True] * 9, at_least(0.5)).met
    assert figure.share("x", "x", [False] * 9, at_least(0.5)).refuted
    assert figure.median("x", "x", [], at_most(2)).met is False


def test_document_and_json_tell_the_same(lab) -> None:
    sections = [synthetic.on_finished_series(lab, rivals.sliding_t), speed.of_detector(lab)]
    text = laboratory.to_markdown(sections, "the command")
    values = json.loads(json.dumps(laboratory.to_json(sections, "the command", 3), allow_nan=False))
    told = [one for section in values["sections"] for one in section["figures"]]
    assert len({one["id"] for one in told}) == len(told)
    assert "    the command\n" in text
    for one in told:
        assert f"| {one['what']} | " in text
    assert max(map(len, (line for line in text.splitlines() if line[:1] not in "|"))) <= 100


def test_command_writes_both_files_and_tells_broken_promises(tmp_path, monkeypatch, capsys) -> None:
    file = tmp_path / "real.csv"
    file.write_text("series,time,value\na,1,2.5\na,2,2.6\n")
    broken = figure.share("x.y", "things found", [False], at_least(0.5))
    seen = {}

    def perform(lab, histories):
        lab.on_progress("at work")
        seen.update(histories)
        return (LabSection("Title", "Text.", (broken,)),)

    monkeypatch.setattr(command, "perform", perform)
    words = ["calibration", "--histories", str(file), "--seed", "7", "--quick"]
    words += ["--write", str(tmp_path / "c.md"), "--json", str(tmp_path / "c.json")]
    monkeypatch.setattr("sys.argv", words)
    assert command.main() == 1
    assert seen["a"].tolist() == [2.5, 2.6]
    assert "--histories real.csv --seed 7 --quick" in (tmp_path / "c.md").read_text()
    assert json.loads((tmp_path / "c.json").read_text())["seed"] == 7
    errors = capsys.readouterr().err
    assert "at work\n" in errors
    assert "not met: things found" in errors


def test_the_repository_has_the_real_series_and_holds_half_of_them_back() -> None:
    histories = command.read_histories(command.HISTORIES)
    kept = online.held_back(histories)
    assert {len(values) for values in histories.values()} == {300}
    assert (len(histories), len(kept)) == (40, 20)
    assert kept.keys() < histories.keys()
    assert kept.keys() == online.held_back(dict(sorted(histories.items(), reverse=True))).keys()


@pytest.mark.parametrize("rule", [kernel_segments, divisive, steps_of_asv])
def test_rules_for_whole_series_name_a_step_and_no_other(rule: Detector) -> None:
    values = np.exp(0.01 * np.random.default_rng(1).standard_normal(60))
    assert rule(values) == rule(np.ones(20)) == ()
    values[30:] *= 1.1
    assert rule(values) == (Alarm(30),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("time,value\n1,2\n", "expected columns series and value"),
        ("series,value\na,nan\n", ":2: value: expected a positive number, found 'nan'"),
        ("series,value\na\n", ":2: value: expected a positive number, found None"),
    ],
)
def test_histories_that_cannot_be_used_are_reported(tmp_path, text, told) -> None:
    file = tmp_path / "real.csv"
    file.write_text(text)
    with pytest.raises(HistoryError, match=told):
        command.read_histories(file)
    with pytest.raises(HistoryError, match="cannot be read"):
        command.read_histories(tmp_path / "absent.csv")
