"""Doubts that come from the machine, on simulated sessions."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import report_between, report_of
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.record.run import Phase, Run, Sample, Surroundings, Trial
from tests.builders import STARTED, a_run

TRIALS = 12
INTERLEAVED = [0, 1, 1, 0] * (TRIALS // 2)
ONE_AFTER_THE_OTHER = [0] * TRIALS + [1] * TRIALS


def session(
    order: list[int],
    *,
    drift: float = 0.0,
    speed: float = 1.0,
    others: tuple[float, float] = (0.02, 0.02),
    noise: float = 0.01,
    seed: int = 1,
    **changes,
) -> Run:
    """A session on a machine whose work takes ``speed``, and ``drift`` more of it at the end."""
    rng = np.random.default_rng(seed)
    slowness = speed * np.linspace(1.0, 1.0 + drift, len(order))
    trials = tuple(
        Trial(
            index=index,
            side=side,
            phase=Phase.PERFORMANCE,
            started_at=STARTED,
            duration_s=2.0,
            samples=(Sample("tpot", (0.01 * slow * float(rng.lognormal(0, noise)),)),),
            surroundings=Surroundings(
                kernel_best_s=0.009 * slow,
                kernel_median_s=0.01 * slow * float(rng.lognormal(0, noise)),
                others=others[side] + float(rng.uniform(0, 0.01)),
                clock_hz=3e9 / slow,
            ),
        )
        for index, (side, slow) in enumerate(zip(order, map(float, slowness), strict=True))
    )
    return a_run({}, {}, trials=trials, **changes)


def the(report: Report) -> Comparison:
    (found,) = report.comparisons
    return found


def about_machine(comparison: Comparison) -> list[str]:
    return [doubt for doubt in comparison.doubts if doubt.startswith("The machine ")]


def apart(baseline: Run, contender: Run) -> Comparison:
    other = replace(contender, id="2f0a9c3e")
    return the(report_between(OneSide(baseline, 0), OneSide(other, 0)))


@pytest.mark.parametrize("seed", range(10))
def test_interleaving_removes_a_drift_of_a_fifth(seed: int) -> None:
    found = the(report_of(session(INTERLEAVED, drift=0.2, seed=seed)))
    assert found.verdict not in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    assert about_machine(found) == []


@pytest.mark.parametrize("seed", range(10))
def test_one_side_after_the_other_has_a_doubt_about_that_drift(seed: int) -> None:
    found = the(report_of(session(ONE_AFTER_THE_OTHER, drift=0.2, seed=seed)))
    assert found.verdict is Verdict.REGRESSION  # of the machine, which is what the doubt is for
    assert any(
        re.search(r"not the same: the calibration kernel took (8|9|10|11|12) % longer", doubt)
        for doubt in about_machine(found)
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_quiet_machine_gives_no_doubt(seed: int) -> None:
    assert about_machine(the(report_of(session(INTERLEAVED, seed=seed)))) == []
    assert about_machine(apart(session([0] * 12, seed=seed), session([0] * 12, seed=99))) == []


def test_drift_within_one_of_two_runs_is_told_with_its_size() -> None:
    found = apart(session([0] * 12), session([0] * 12, drift=0.2, seed=2))
    assert any(
        re.search(r"while the contender .* kernel took (19|20|21) % longer at the end", doubt)
        for doubt in about_machine(found)
    )
    assert not any("while the baseline" in doubt for doubt in about_machine(found))


def test_a_slower_machine_in_the_second_run_is_told_with_its_size() -> None:
    found = about_machine(apart(session([0] * 12), session([0] * 12, speed=1.08, seed=2)))
    assert any("not the same: the calibration kernel took 8 % longer" in doubt for doubt in found)
    assert any("the processors' clock was 7 % lower" in doubt for doubt in found)


def test_neighbours_of_one_side_are_told() -> None:
    found = about_machine(the(report_of(session(INTERLEAVED, others=(0.02, 0.4)))))
    (doubt,) = found
    assert doubt == (
        "The machine itself was not the same: others used 38 points more of the processors' "
        "time around the contender's trials than around the baseline's; repeat on a quiet machine."
    )


def test_a_restless_machine_is_told_with_who_else_used_it() -> None:
    """What changes from trial to trial is noise that no pairing takes out."""
    restless = session([0] * 12, noise=0.3, seed=3)
    assert any("restless" in doubt for doubt in about_machine(apart(session([0] * 12), restless)))
    (doubt,) = about_machine(the(report_of(session(INTERLEAVED, noise=0.3, others=(0.6, 0.6)))))
    assert re.fullmatch(
        r"The machine was restless: the times of the calibration kernel spread by [123]\d % while "
        r"others used 6\d % of the processors' time; repeat on a quiet machine\.",
        doubt,
    )


def test_no_reading_gives_no_doubt() -> None:
    """Records made before there was a kernel; systems that do not tell."""
    run = session(ONE_AFTER_THE_OTHER, drift=0.2)
    blind = replace(run, trials=tuple(replace(t, surroundings=None) for t in run.trials))
    assert about_machine(the(report_of(blind))) == []
    deaf = Surroundings(0.01, 0.01)
    mute = replace(run, trials=tuple(replace(t, surroundings=deaf) for t in run.trials))
    assert about_machine(the(report_of(mute))) == []


def test_answers_do_not_depend_on_the_machine() -> None:
    run = session(ONE_AFTER_THE_OTHER, drift=0.2)
    asked = tuple(
        replace(t, phase=Phase.CONTRACT, samples=(Sample("contract.any", (0.0,)),))
        for t in run.trials
    )
    assert about_machine(the(report_of(replace(run, trials=asked)))) == []
