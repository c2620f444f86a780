"""Doubts that come from the machine, on simulated sessions."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybridwatch.analysis.machine_state import machine_doubts
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.records.run import GpuState, MachineState, Phase, Run, Sample, Trial
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
    gpus: Callable[[int, int], tuple[GpuState, ...]] = lambda _index, _side: (),
    **changes,
) -> Run:
    """A session on a machine whose work takes ``speed``, and ``drift`` more of it at the end.

    ``gpus`` gives the GPUs around the trial of an index and a side.
    """
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
            surroundings=MachineState(
                kernel_best_s=0.009 * slow,
                kernel_median_s=0.01 * slow * float(rng.lognormal(0, noise)),
                others=others[side] + float(rng.uniform(0, 0.01)),
                clock_hz=3e9 / slow,
                gpus=gpus(index, side),
            ),
        )
        for index, (side, slow) in enumerate(zip(order, map(float, slowness), strict=True))
    )
    return a_run({}, {}, trials=trials, **changes)


def the(report: Report) -> Comparison:
    (found,) = report.comparisons
    return found


def about_machine(comparison: Comparison) -> list[str]:
    return [doubt for doubt in comparison.doubts if doubt.startswith(("The machine ", "The GPU "))]


def gpu(index: int = 0, *, clock: float = 1.755e9, seed: int = 5, **facts: Any) -> GpuState:
    """A healthy GPU under load; at its power limit for a part of the time, as such are."""
    rng = np.random.default_rng([seed, index])
    usual: dict[str, Any] = {
        "sm_clock_hz": clock * float(rng.lognormal(0, 0.004)),
        "memory_clock_hz": 3.201e9,
        "power_w": 690.0,
        "temperature_c": 66.0,
        "utilisation": 0.95,
        "throttled": {"power-cap": float(rng.uniform(0.3, 0.5))},
        "others_bytes": 0,
    }
    return GpuState(0, 12, **(usual | facts))


def apart(baseline: Run, contender: Run) -> Comparison:
    other = replace(contender, id="2f0a9c3e")
    return the(report_between(OneSide(baseline, 0), OneSide(other, 0)))


@pytest.mark.parametrize("seed", range(10))
def test_interleaving_removes_a_drift_of_a_fifth(seed: int) -> None:
    found = the(build_report(session(INTERLEAVED, drift=0.2, seed=seed)))
    assert found.verdict not in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    assert about_machine(found) == []


@pytest.mark.parametrize("seed", range(10))
def test_one_side_after_the_other_has_a_doubt_about_that_drift(seed: int) -> None:
    found = the(build_report(session(ONE_AFTER_THE_OTHER, drift=0.2, seed=seed)))
    assert found.verdict is Verdict.REGRESSION  # of the machine, which is what the doubt is for
    assert any(
        re.search(r"not the same: the calibration kernel took (8|9|10|11|12) % longer", doubt)
        for doubt in about_machine(found)
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_quiet_machine_gives_no_doubt(seed: int) -> None:
    assert about_machine(the(build_report(session(INTERLEAVED, seed=seed)))) == []
    assert about_machine(apart(session([0] * 12, seed=seed), session([0] * 12, seed=99))) == []


def test_drift_within_one_of_two_runs_is_reported_with_its_size() -> None:
    found = apart(session([0] * 12), session([0] * 12, drift=0.2, seed=2))
    assert any(
        re.search(r"while the contender .* kernel took (19|20|21) % longer at the end", doubt)
        for doubt in about_machine(found)
    )
    assert not any("while the baseline" in doubt for doubt in about_machine(found))


def test_a_slower_machine_in_the_second_run_is_reported_with_its_size() -> None:
    found = about_machine(apart(session([0] * 12), session([0] * 12, speed=1.08, seed=2)))
    assert any("not the same: the calibration kernel took 8 % longer" in doubt for doubt in found)
    assert any("the processors' clock was 7 % lower" in doubt for doubt in found)


def test_neighbours_of_one_side_are_reported() -> None:
    found = about_machine(the(build_report(session(INTERLEAVED, others=(0.02, 0.4)))))
    (doubt,) = found
    assert doubt == (
        "The machine itself was not the same: others used 38 points more of the processors' "
        "time around the contender's trials than around the baseline's; repeat on a quiet machine."
    )


def test_a_restless_machine_is_reported_with_who_else_used_it() -> None:
    """What changes from trial to trial is noise that no pairing takes out."""
    restless = session([0] * 12, noise=0.3, seed=3)
    assert any("restless" in doubt for doubt in about_machine(apart(session([0] * 12), restless)))
    (doubt,) = about_machine(the(build_report(session(INTERLEAVED, noise=0.3, others=(0.6, 0.6)))))
    assert re.fullmatch(
        r"The machine was restless: the times of the calibration kernel spread by [123]\d % while "
        r"others used 6\d % of the processors' time; repeat on a quiet machine\.",
        doubt,
    )


def test_no_reading_gives_no_doubt() -> None:
    """Records made before there was a kernel; systems that do not tell."""
    run = session(ONE_AFTER_THE_OTHER, drift=0.2)
    blind = replace(run, trials=tuple(replace(t, surroundings=None) for t in run.trials))
    assert about_machine(the(build_report(blind))) == []
    deaf = MachineState(0.01, 0.01)
    mute = replace(run, trials=tuple(replace(t, surroundings=deaf) for t in run.trials))
    assert about_machine(the(build_report(mute))) == []


def test_answers_do_not_depend_on_the_machine() -> None:
    run = session(ONE_AFTER_THE_OTHER, drift=0.2)
    asked = tuple(
        replace(t, phase=Phase.CONTRACT, samples=(Sample("contract.any", (0.0,)),))
        for t in run.trials
    )
    assert about_machine(the(build_report(replace(run, trials=asked)))) == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("order", [INTERLEAVED, ONE_AFTER_THE_OTHER])
def test_a_healthy_gpu_of_ours_gives_no_doubt(order: list[int], seed: int) -> None:
    found = the(build_report(session(order, gpus=lambda index, _: (gpu(index, seed=seed),))))
    assert about_machine(found) == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("hardware-slowdown", "the hardware's own slowdown"),
        ("hardware-thermal", "heat, by the hardware"),
        ("software-thermal", "heat, by the driver"),
        ("power-brake", "an external power brake"),
    ],
)
def test_a_throttled_gpu_is_reported_whichever_side_it_met(reason: str, words: str) -> None:
    hot = {reason: 0.1}
    for order in (INTERLEAVED, ONE_AFTER_THE_OTHER):
        run = session(order, gpus=lambda at, _: (gpu(at), gpu(at, throttled=hot if at < 3 else {})))
        (doubt,) = about_machine(the(build_report(run)))
        assert doubt == (
            f"The GPU was throttled in 3 of 24 trials ({words}): its speed then is not the "
            "engine's; see to cooling and power, and repeat."
        )


def test_the_power_limit_alone_is_no_doubt_unless_it_met_one_side() -> None:
    always = session(INTERLEAVED, gpus=lambda at, _: (gpu(at, throttled={"power-cap": 1.0}),))
    assert about_machine(the(build_report(always))) == []
    once = session(
        INTERLEAVED, gpus=lambda at, side: (gpu(at, throttled={"power-cap": side * 0.9}),)
    )
    (doubt,) = about_machine(the(build_report(once)))
    assert doubt == (
        "The machine itself was not the same: the GPU was held at its power limit for 90 points "
        "more of the time around the contender's trials than around the baseline's; repeat on a "
        "quiet machine."
    )


def test_a_shared_gpu_is_reported_with_how_much_others_held() -> None:
    held = 3 * 1024**3
    run = session(INTERLEAVED, gpus=lambda at, _: (gpu(at, others_bytes=held if at > 20 else 0),))
    (doubt,) = about_machine(the(build_report(run)))
    assert doubt == (
        "The GPU was shared in 3 of 24 trials: other processes held up to 3.0 GiB of its memory; "
        "repeat where nobody else computes."
    )


def test_what_a_driver_keeps_is_not_someone_else() -> None:
    run = session(INTERLEAVED, gpus=lambda at, _: (gpu(at, others_bytes=4 * 1024**2),))
    assert about_machine(the(build_report(run))) == []


def test_another_clock_of_the_gpu_is_reported_with_its_size() -> None:
    slow = session(INTERLEAVED, gpus=lambda at, side: (gpu(at, clock=1.755e9 - 1.8e8 * side),))
    (doubt,) = about_machine(the(build_report(slow)))
    assert re.search(r"not the same: the GPU's clock was 1[01] % lower around the cont", doubt)
    memory = session(
        INTERLEAVED, gpus=lambda at, side: (gpu(at, memory_clock_hz=3.2e9 - 6e8 * side),)
    )
    (doubt,) = about_machine(the(build_report(memory)))
    assert "the clock of the GPU's memory was 19 % lower around the contender's" in doubt


def test_the_slowest_of_several_gpus_counts() -> None:
    run = session(
        INTERLEAVED, gpus=lambda at, side: (gpu(at), gpu(at, clock=1.755e9 - 1.8e8 * side))
    )
    assert "the GPU's clock was" in about_machine(the(build_report(run)))[0]


def test_a_clock_of_the_gpu_that_falls_is_reported_unless_both_sides_share_it() -> None:
    def falling(at: int, _side: int) -> tuple[GpuState, ...]:
        return (gpu(at, clock=1.755e9 * (1 - 0.01 * at)),)

    assert about_machine(the(build_report(session(INTERLEAVED, gpus=falling)))) == []
    found = about_machine(the(build_report(session(ONE_AFTER_THE_OTHER, gpus=falling))))
    assert any(
        re.search(r"while the baseline was measured: the GPU's clock was 1[01] % lower at", doubt)
        for doubt in found
    )


def test_a_gpu_that_tells_nothing_gives_no_doubt() -> None:
    run = session(ONE_AFTER_THE_OTHER, gpus=lambda _at, _side: (GpuState(0, 12),))
    assert about_machine(the(build_report(run))) == []


def test_a_run_of_one_build_tells_of_its_gpus_once() -> None:
    hot = {"hardware-thermal": 1.0}
    two = session(ONE_AFTER_THE_OTHER, drift=0.2, gpus=lambda at, _: (gpu(at, throttled=hot),))
    assert len(machine_doubts(two)) > 1
    alone = replace(two, builds=two.builds[:1], trials=tuple(two.measured(0)))
    (doubt,) = machine_doubts(alone)
    assert doubt.startswith("The GPU was throttled in 12 of 12 trials")


def test_answers_do_not_depend_on_the_gpu() -> None:
    hot = {"hardware-thermal": 1.0}
    run = session(INTERLEAVED, gpus=lambda at, _: (gpu(at, throttled=hot, others_bytes=10**10),))
    asked = tuple(
        replace(t, phase=Phase.CONTRACT, samples=(Sample("contract.any", (0.0,)),))
        for t in run.trials
    )
    assert len(about_machine(the(build_report(run)))) == 2
    assert about_machine(the(build_report(replace(run, trials=asked)))) == []
