import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hybridwatch.analysis.report import report_of
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.store import Broken, list_records, write_run
from hybridwatch.views.board import board_of, entry_of, stamps_of
from hybridwatch.views.figures import figure_history
from hybridwatch.views.history import (
    SEVERITY,
    Entry,
    age,
    answer_title,
    flips_of,
    latest_standings,
    notes_of,
    repeat_command_of,
    verdict_of,
    worst_first,
)
from hybridwatch.views.series import Series, label_of, levels_by_build, series_of
from tests.store_builders import REGRESSED, STARTED, TESTBED, Plan, answer, run, scenario

HOSTILE = '<img src=x onerror="boom()"> [a](javascript:boom()) **b**'


def entry(plan: Plan, later_h: int = 0) -> Entry:
    made = run(replace(plan, started_at=STARTED + timedelta(hours=later_h)))
    return Entry(Path(f"{made.id}.json"), made, report_of(made))


def single(later_h: int = 0) -> Entry:
    both = entry(Plan(), later_h).run
    one = replace(
        both,
        builds=both.builds[:1],
        trials=tuple(
            replace(trial, index=index)
            for index, trial in enumerate(trial for trial in both.trials if trial.side == 0)
        ),
    )
    return Entry(Path("single.json"), one, None, "one build")


def series_named(entries: list[Entry], name: str) -> Series:
    everything = series_of(entries)
    return next(s for s in everything if label_of(s.metric, s.statistic) == name)


def test_severity_names_every_verdict_and_green_is_last() -> None:
    assert set(SEVERITY) == set(Verdict)
    assert SEVERITY[0] is Verdict.REGRESSION
    assert SEVERITY[-1] is Verdict.EQUIVALENT


def test_worst_verdict_speaks_for_the_run() -> None:
    report = entry(REGRESSED).report
    assert report is not None
    assert verdict_of(report) is Verdict.REGRESSION
    assert verdict_of(replace(report, comparisons=())) is Verdict.MISSING
    order = [comparison.verdict for comparison in worst_first(report.comparisons)]
    assert order == sorted(order, key=SEVERITY.index)


def test_latest_standings_put_bad_news_first_and_keep_one_per_comparison() -> None:
    entries = [
        entry(replace(REGRESSED, seed=1), 0),
        entry(replace(REGRESSED, seed=2), 1),
        entry(Plan(), 2),
        entry(Plan(scenario=scenario("smoke/other")), 3),
        entry(Plan(testbed=replace(TESTBED, id="other")), 4),
        single(5),
    ]
    standings = latest_standings(entries)
    assert standings[0].entry is entries[1]
    assert standings[0].verdict is Verdict.REGRESSION
    assert "accuracy.recall" in standings[0].sentence
    assert [s.entry for s in standings[1:]] == [entries[4], entries[3], entries[2]]


def test_regression_healed_by_a_newer_run_is_no_longer_shown() -> None:
    bad = entry(replace(REGRESSED, accuracy=(0.97, 0.5)), 0)
    good = entry(replace(REGRESSED, accuracy=(0.97, 0.97), flagged_rows=(0, 0)), 1)
    [standing] = latest_standings([bad, good])
    assert standing.entry is good
    assert standing.verdict is not Verdict.REGRESSION


def test_history_holds_every_trial_value_and_its_median() -> None:
    entries = [entry(replace(REGRESSED, seed=seed), seed) for seed in range(3)]
    series = series_named(entries, "output_throughput")
    assert len(series.points) == 3 * 2 * 7
    assert len(series.levels) == 3 * 2
    assert [point.position for point in series.points[::14]] == [0, 1, 2]
    raw = {
        value
        for trial in entries[0].run.measured(0)
        for sample in trial.samples
        if sample.metric == "output_throughput"
        for value in sample.values
    }
    assert {p.value for p in series.points if (p.position, p.side) == (0, 0)} == raw
    assert sorted(levels_by_build(series)) == [
        ("cpu-0.27.1", 0),
        ("cpu-0.27.1~padded-rows-prefilling", 1),
    ]


def test_history_of_accuracy_is_the_share_of_each_trial() -> None:
    series = series_named([entry(REGRESSED)], "accuracy.recall")
    assert len(series.points) == 2
    assert all(0 < point.value < 1 for point in series.points)


def test_single_build_runs_have_a_history_but_no_standing() -> None:
    alone = single()
    assert latest_standings([alone]) == []
    series = series_named([alone], "itl p99")
    assert len(series.points) == 7
    assert {point.side for point in series.points} == {0}
    assert repeat_command_of(alone) == "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1"


def test_metric_seen_only_in_an_older_run_keeps_its_place_in_the_history() -> None:
    old, new = entry(REGRESSED, 0), entry(Plan(), 1)
    bare = replace(new, run=replace(new.run, trials=new.run.trials[:4]))
    assert series_named([old, bare], "ttft p99").runs == (old.run.started_at,)


def test_flips_put_lost_answers_first() -> None:
    report = entry(REGRESSED).report
    assert report is not None
    [(metric, flips)] = flips_of(report)
    assert metric.id == "accuracy.recall"
    assert [flip.contender.correct for flip in flips] == sorted(
        flip.contender.correct for flip in flips
    )
    assert answer_title("contender", answer(0, False)) == "contender: wrong"


def test_notes_join_equal_doubts_and_name_their_metrics() -> None:
    report = entry(replace(REGRESSED, failed_trials=1)).report
    assert report is not None
    notes = dict(notes_of(report))
    assert any("output_throughput, request_throughput, ttft median" in d for d in notes["Doubts"])
    assert any("stopped answering" in line for line in notes["Failed trials"])
    assert any("reverted" in line for line in notes["What differs between the two sides"])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (-500, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (7199, "1 h ago"),
        (86_400, "1 d ago"),
        (8_640_000, "100 d ago"),
    ],
)
def test_age_is_told_in_the_largest_unit(seconds: int, said: str) -> None:
    assert age(STARTED, STARTED + timedelta(seconds=seconds)) == said


def test_repeat_command_cannot_smuggle_words_into_a_shell() -> None:
    alone = single()
    build = replace(alone.run.builds[0], label="x; rm -rf ~")
    words = shlex.split(repeat_command_of(replace(alone, run=replace(alone.run, builds=(build,)))))
    assert words == ["hybridwatch", "run", "smoke/padded-graph-rows", "--build", "x; rm -rf ~"]


def hostile_entry() -> Entry:
    made = run(replace(REGRESSED, text=HOSTILE, scenario=scenario(HOSTILE), failed_trials=1))
    builds = tuple(replace(build, label=build.label + HOSTILE) for build in made.builds)
    harness = replace(made.harness, revision=HOSTILE)
    made = replace(made, builds=builds, testbed=replace(made.testbed, id=HOSTILE), harness=harness)
    return Entry(Path(HOSTILE + ".json"), made, report_of(made))


def test_figures_show_hostile_text_as_text() -> None:
    bad = hostile_entry()
    for series in series_of([bad]):
        assert "<img" not in figure_history(series).to_json().replace("\\u003c", "<")


def test_figure_has_a_point_per_trial_with_its_record_in_the_hover() -> None:
    series = series_named([entry(REGRESSED)], "ttft median")
    dots = [t for t in figure_history(series).data if t.mode == "markers"]
    assert sum(len(trace.x) for trace in dots) == len(series.points) == 14
    assert len(set(dots[0].x)) == 7
    assert series.points[0].record in dots[0].customdata[0]
    assert series.points[0].revision in dots[0].customdata[0]


def test_board_keeps_readable_records_and_names_the_broken(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    cut = write_run(tmp_path, run(Plan(started_at=STARTED + timedelta(hours=1))))
    before = stamps_of(cut)
    cut.write_bytes(cut.read_bytes()[:99])
    assert stamps_of(cut) != before
    board = board_of(map(entry_of, list_records(tmp_path)))
    assert [isinstance(b, Broken) for b in board.broken] == [True]
    [kept] = board.entries
    assert not any(trial.answers for trial in kept.run.trials)
    assert kept.report is not None
    assert next(flips_of(kept.report))


def test_single_build_record_is_an_entry_that_says_why_it_has_no_verdict(tmp_path: Path) -> None:
    path = write_run(tmp_path, single().run)
    found = entry_of(path)
    assert isinstance(found, Entry)
    assert found.report is None
    assert "expected 2" in found.trouble


def test_history_never_mixes_machines_scenarios_or_their_versions() -> None:
    mine = entry(Plan(), 0)
    later = entry(Plan(seed=8), 1)
    strangers = (
        entry(Plan(testbed=replace(TESTBED, id="other")), 2),
        entry(Plan(scenario=scenario("smoke/other")), 3),
        entry(Plan(scenario=replace(scenario(), version=2)), 4),
    )
    board = board_of([mine, *strangers, later])
    assert board.beside(mine) == [mine, later]
