"""What is kept of an index goes with it."""

import gc
import shlex
import weakref
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest

from hybridwatch.analysis.report import EXPECTED, build_report
from hybridwatch.analysis.verdict import ORDER, Verdict, find_line_verdict, worst_first
from hybridwatch.analysis.wording.numbers import age
from hybridwatch.database.reading import read_stamp
from hybridwatch.history.entry import Entry, Trials, load_entry, load_trials
from hybridwatch.history.runs import cached_per_index
from hybridwatch.records.store import Broken, write_run
from hybridwatch.reports.figures.base import figure_trials
from hybridwatch.reports.sentence import (
    render_flips,
    render_notes,
    render_repeat_command,
)
from tests.store_builders import REGRESSED, STARTED, Plan, run, scenario

HOSTILE = '<img src=x onerror="boom()"> [a](javascript:boom()) **b**'


def entry(plan: Plan, later_h: int = 0) -> Entry:
    made = run(replace(plan, started_at=STARTED + timedelta(hours=later_h)))
    return Entry(Path(f"{made.id}.json"), made, build_report(made))


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


def trials_named(entry: Entry, name: str) -> Trials:
    return next(t for t in load_trials(entry) if t.subject.label == name)


def test_what_gave_no_number_is_worse_than_a_regression_and_green_is_last() -> None:
    assert set(ORDER) == set(Verdict)
    assert ORDER[:3] == (Verdict.FAILED, Verdict.MISSING, Verdict.REGRESSION)
    assert ORDER[-1] is Verdict.EQUIVALENT


def test_worst_verdict_speaks_for_the_run() -> None:
    report = entry(REGRESSED).report
    assert report is not None
    assert find_line_verdict(report) is Verdict.REGRESSION
    assert find_line_verdict(replace(report, comparisons=())) is Verdict.MISSING
    order = [comparison.verdict for comparison in worst_first(report.comparisons)]
    assert order == sorted(order, key=ORDER.index)


def test_a_run_has_every_trial_value_and_the_median_of_each_side() -> None:
    measured = entry(REGRESSED)
    trials = trials_named(measured, "output_throughput")
    assert [len(side.values) for side in trials.sides] == [7, 7]
    raw = [
        value
        for trial in measured.run.measured(0)
        for sample in trial.samples
        if sample.metric == "output_throughput"
        for value in sample.values
    ]
    assert list(trials.sides[0].values) == raw
    assert [(one.build, one.side) for one in trials.sides] == [
        ("cpu-0.27.1", 0),
        ("cpu-0.27.1~padded-rows-prefilling", 1),
    ]
    assert trials.sides[0].median == median(raw)


def test_accuracy_is_the_share_of_each_trial() -> None:
    series = trials_named(entry(REGRESSED), "accuracy.recall")
    assert [len(side.values) for side in series.sides] == [1, 1]
    assert all(0 < value < 1 for side in series.sides for value in side.values)


def test_single_build_runs_have_trials() -> None:
    alone = single()
    series = trials_named(alone, "itl p99")
    assert [(side.side, len(side.values)) for side in series.sides] == [(0, 7)]
    assert (
        render_repeat_command(alone) == "hybridwatch run smoke/padded-graph-rows --build cpu-0.27.1"
    )


def test_flips_put_lost_answers_first() -> None:
    report = entry(REGRESSED).report
    assert report is not None
    [(metric, flips)] = render_flips(report)
    assert metric.id == "accuracy.recall"
    assert [flip.contender.correct for flip in flips] == sorted(
        flip.contender.correct for flip in flips
    )


def test_notes_join_equal_doubts_and_name_their_metrics() -> None:
    report = entry(replace(REGRESSED, failed_trials=1)).report
    assert report is not None
    notes = dict(render_notes(report))
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
def test_age_is_reported_in_the_largest_unit(seconds: int, said: str) -> None:
    assert age(STARTED, STARTED + timedelta(seconds=seconds)) == said


def test_repeat_command_cannot_smuggle_words_into_a_shell() -> None:
    alone = single()
    build = replace(alone.run.builds[0], label="x; rm -rf ~")
    words = shlex.split(
        render_repeat_command(replace(alone, run=replace(alone.run, builds=(build,))))
    )
    assert words == ["hybridwatch", "run", "smoke/padded-graph-rows", "--build", "x; rm -rf ~"]


def hostile_entry() -> Entry:
    made = run(replace(REGRESSED, text=HOSTILE, scenario=scenario(HOSTILE), failed_trials=1))
    builds = tuple(replace(build, label=build.label + HOSTILE) for build in made.builds)
    harness = replace(made.harness, revision=HOSTILE)
    made = replace(made, builds=builds, testbed=replace(made.testbed, id=HOSTILE), harness=harness)
    return Entry(Path(HOSTILE + ".json"), made, build_report(made))


def test_figures_show_hostile_text_as_text() -> None:
    bad = hostile_entry()
    for series in load_trials(bad):
        assert "<img" not in figure_trials(series).to_json().replace("\\u003c", "<")


def test_figure_has_a_point_per_trial_with_its_record_in_the_hover() -> None:
    series = trials_named(entry(REGRESSED), "ttft median")
    dots = [t for t in figure_trials(series).data if t.mode == "markers"]
    assert [len(trace.x) for trace in dots] == [len(side.values) for side in series.sides] == [7, 7]
    assert len(set(dots[0].x)) == 7
    assert series.entry.path.name in dots[0].customdata[0]
    assert series.entry.run.harness.revision in dots[0].customdata[0]


def test_a_record_is_an_entry_without_its_answers_until_it_breaks(tmp_path: Path) -> None:
    path = write_run(tmp_path, run(REGRESSED))
    kept, before = load_entry(path), read_stamp(path)
    assert isinstance(kept, Entry)
    assert not any(trial.answers for trial in kept.run.trials)
    assert kept.report is not None
    assert next(render_flips(kept.report))
    path.write_bytes(path.read_bytes()[:99])
    assert read_stamp(path) != before
    assert isinstance(load_entry(path), Broken)


def test_single_build_record_is_judged_by_what_its_scenario_expects(tmp_path: Path) -> None:
    path = write_run(tmp_path, single().run)
    found = load_entry(path)
    assert isinstance(found, Entry)
    assert found.report is not None
    assert found.report.baseline.build.label == EXPECTED


class Index:
    """Stands for an index: only which one it is counts."""


def test_an_index_is_asked_once_until_another_one_is_asked() -> None:
    asked: list[tuple[object, str]] = []

    @cached_per_index
    def ask(index: Index, /, word: str) -> str:
        asked.append((index, word))
        return word.upper()

    first, second = Index(), Index()
    assert [ask(first, "a"), ask(first, "a"), ask(first, "b")] == ["A", "A", "B"]
    assert asked == [(first, "a"), (first, "b")]
    assert ask(second, "a") == "A"
    assert ask(first, "a") == "A"
    assert asked[2:] == [(second, "a"), (first, "a")]


def test_an_index_is_let_go_once_another_one_is_asked() -> None:
    @cached_per_index
    def ask(index: Index, /) -> list[Index]:
        return [index]

    old = Index()
    gone = weakref.ref(old)
    ask(old)
    del old
    gc.collect()
    assert gone() is not None
    ask(Index())
    gc.collect()
    assert gone() is None
