"""Recorded sessions: from a run of several sides to rows and back to runs of two."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.errors import HistoryError
from hybridwatch.records.run import Failure, MachineState, Phase, Run
from hybridwatch_lab.calibration.sessions import (
    BASELINE,
    SAME,
    RecordedTrial,
    as_run,
    joined,
    read_sessions,
    recorded,
    write_sessions,
)
from tests.builders import BASELINE as BUILD
from tests.builders import Trials, a_run, noisy

NAMES = (SAME, BASELINE, "busy-step-10")
BLOCKS = 6


def a_session(sessions: int = 2) -> Run:
    """A run of three sides in turn; of each request two times to its first token."""
    n = sessions * BLOCKS + 1
    sides: list[dict[str, Trials]] = [
        {
            "output_throughput": noisy(100.0, n, seed=side),
            "ttft": [(one, 2 * one) for one in noisy(0.1, n, seed=9 + side)],
        }
        for side in range(3)
    ]
    run = a_run(*sides, builds=(BUILD,) * 3)
    around = MachineState(kernel_best_s=0.009, kernel_median_s=0.01, others=0.25)
    return replace(run, trials=tuple(replace(one, surroundings=around) for one in run.trials))


def written(file: Path, run: Run) -> Path:
    write_sessions(file, recorded(run, NAMES, BLOCKS))
    return file


def test_what_is_read_gives_the_report_of_what_was_measured(tmp_path) -> None:
    """A session's verdicts hang on the numbers of its trials, which are all there."""
    run = a_session(1)
    (trials,) = read_sessions(written(tmp_path / "x.csv", run)).values()
    kept = [one for one in run.trials if one.side in {1, 2}][: 2 * BLOCKS]
    sides = tuple(replace(one, side=one.side - 1, index=k) for k, one in enumerate(kept))
    expected = build_report(replace(run, builds=(BUILD,) * 2, trials=sides))
    found = build_report(as_run(trials, "busy-step-10"))
    assert [c.verdict for c in found.comparisons] == [c.verdict for c in expected.comparisons]
    for ours, theirs in zip(found.comparisons, expected.comparisons, strict=True):
        assert (ours.metric, ours.statistic) == (theirs.metric, theirs.statistic)
        assert ours.ratios == pytest.approx(theirs.ratios, abs=1e-4)


def test_a_run_is_cut_into_sessions_and_what_is_left_over_is_dropped(tmp_path) -> None:
    found = read_sessions(written(tmp_path / "x.csv", a_session(2)))
    assert [len(trials) for trials in found.values()] == [3 * BLOCKS] * 2
    assert [trial.block for trial in found[min(found)]] == sorted([*range(BLOCKS)] * 3)


def test_files_grow(tmp_path) -> None:
    file = written(tmp_path / "x.csv", a_session(1))
    written(file, replace(a_session(1), id="22222222"))
    assert sorted(read_sessions(file)) == ["1f0a9c3e.0", "22222222.0"]


def test_a_failed_trial_takes_its_block_along(tmp_path) -> None:
    run = a_session(1)
    failed = replace(run.trials[5], samples=(), failure=Failure("it died", ""))
    run = replace(run, trials=(*run.trials[:5], failed, *run.trials[6:]))
    (trials,) = read_sessions(written(tmp_path / "x.csv", run)).values()
    assert len(as_run(trials, "busy-step-10").trials) == 2 * (BLOCKS - 1)
    assert len(as_run(trials, SAME).trials) == 2 * BLOCKS
    assert {one.phase for one in as_run(trials, SAME).trials} == {Phase.PERFORMANCE}


def test_other_columns_are_refused(tmp_path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("session,side\n", encoding="utf-8")
    with pytest.raises(HistoryError, match=r"x\.csv: columns: expected \['session', 'side'\]"):
        written(file, a_session(1))
    with pytest.raises(HistoryError, match=r"x\.csv: columns: missing at_s, block"):
        read_sessions(file)


def test_a_value_that_is_no_number_is_named(tmp_path) -> None:
    file = written(tmp_path / "x.csv", a_session(1))
    text = file.read_text(encoding="utf-8").replace(",0.009,", ",much,", 1)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError, match=r"x\.csv:2: kernel_best_s: expected a number"):
        read_sessions(file)


def test_sessions_of_one_recording_are_joined_in_their_order() -> None:
    def session(name: str, blocks: int) -> list[RecordedTrial]:
        around = MachineState(0.009, 0.01, 0.3)
        return [
            RecordedTrial(name, block, side, 0.0, 1.0, around, {"ttft.median": block})
            for block in range(blocks)
            for side in (BASELINE, SAME)
        ]

    parts = {name: session(name, 3) for name in ("a.10", "a.2", "b.0", "a.0")}
    first, second = joined(parts, 4)
    assert [one.session for one in first[::2]] == ["a.0", "a.0", "a.0", "a.2"]
    assert [one.session for one in second[::2]] == ["a.2", "a.2", "a.10", "a.10"]
    for trials in (first, second):
        assert [one.block for one in trials] == [0, 0, 1, 1, 2, 2, 3, 3]
        assert {one.side for one in trials} == {BASELINE, SAME}
