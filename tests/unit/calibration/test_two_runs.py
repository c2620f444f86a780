"""Two runs, simulated: the short way to a report says what the long way says."""

from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.noise import learned_noise
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch_lab.calibration import reports
from hybridwatch_lab.calibration.laboratory import Laboratory
from hybridwatch_lab.calibration.simulated import SimulatedSession, rates_run


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("trials", reports.TRIALS)
def test_verdicts_are_those_of_whole_reports(trials, known) -> None:
    old, new, earlier = reports.unchanged(np.random.default_rng(3), 0.05, trials)
    new[0] *= 1.5
    runs = [rates_run([one, one], SimulatedSession(trials)) for one in (old, new)]
    names = {
        (c.metric.id, c.statistic): learned_noise(series.tolist()) or 0.0
        for c, series in zip(
            report_between(OneSide(runs[0], 0), OneSide(runs[0], 1)).comparisons,
            earlier,
            strict=True,
        )
    }
    sides = OneSide(runs[0], 0), OneSide(replace(runs[1], id="11111111"), 0)
    whole = report_between(*sides, Terms(noise=names if known else {}))
    short = reports.report_on_runs(old, new, earlier, known=known)
    assert [c.verdict for c in short.comparisons] == [c.verdict for c in whole.comparisons]
    assert [c.p_holm for c in short.comparisons] == [c.p_holm for c in whole.comparisons]


def test_a_rule_that_trusts_trials_alone_is_caught(monkeypatch) -> None:
    """As the rules were once: noise between runs unknown, and the trials believed."""
    monkeypatch.setattr(reports, "learned_noise", lambda _: 0.0)
    lab = Laboratory(seed=3, quick=True, tell=lambda _: None)
    refuted = {one.id for one in reports.of_two_runs(lab).figures if one.refuted}
    assert {
        f"two_runs.stopped.noise_{noise}.trials_{trials}"
        for noise in (0.03, 0.05)
        for trials in reports.TRIALS
    } <= refuted
