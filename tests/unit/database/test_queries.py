import json
from datetime import timedelta
from inspect import getdoc

import pandas as pd
import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.database.moment import CELL, HISTORY, STANDING
from hybridwatch.records.identity import ScenarioRef
from hybridwatch.records.run import Phase
from hybridwatch.records.store import read_run, write_run
from tests.builders import BASELINE, CONTENDER, SCENARIO, STARTED, TESTBED, a_run, with_failures
from tests.unit.database.stores import add, opened

pytestmark = pytest.mark.usefixtures("place")

TTFT = (SCENARIO.id, TESTBED.id, "ttft", "median")
OTHER = ScenarioRef("curated/other", 1, "e" * 64, "padded-rows-prefilling")


def ttft(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["metric"] == "ttft") & (frame["statistic"] == "median")]


def test_series_is_in_order_of_time_whatever_came_first(tmp_path):
    for number in (3, 1, 2):
        add(tmp_path, number)
        opened(tmp_path)
    series = opened(tmp_path).index.series(*TTFT)
    assert series.levels["run"].tolist() == [f"{number:08x}" for number in (1, 1, 2, 2, 3, 3)]
    assert series.levels["position"].tolist() == [0, 0, 1, 1, 2, 2]
    assert series.levels["side"].tolist() == [0, 1] * 3
    assert series.levels["n"].tolist() == [7] * 6
    assert series.points["nth"].tolist() == list(range(7)) * 6
    assert series.points["started_at"].is_monotonic_increasing


def test_series_never_mixes_versions_testbeds_or_scenarios(tmp_path):
    add(tmp_path, 1)
    add(tmp_path, 2, scenario=OTHER)
    add(tmp_path, 3, scenario=ScenarioRef(SCENARIO.id, 2, "f" * 64, SCENARIO.fix))
    index = opened(tmp_path).index
    levels = index.series(*TTFT).levels.drop_duplicates("run")
    apart = zip(levels["run"], levels["version"], levels["digest"], strict=True)
    assert set(apart) == {("00000001", 1, SCENARIO.digest), ("00000003", 2, "f" * 64)}
    assert set(index.cells()["scenario"]) == {SCENARIO.id, OTHER.id}
    assert len(index.cells()) == 3 * 4
    assert set(index.cells()["runs"]) == {1}


def test_level_of_an_even_number_of_trials_is_between_the_middle_two(tmp_path):
    write_run(tmp_path, a_run({"ttft": (1.0, 4.0, 2.0, 9.0)}, {"ttft": (5.0, 7.0)}))
    levels = opened(tmp_path).index.series(*TTFT).levels
    assert levels["value"].tolist() == [3.0, 6.0]


def test_share_of_right_answers_is_one_value_a_trial(tmp_path):
    add(tmp_path, 1)
    found = opened(tmp_path).index.series(*TTFT[:2], "accuracy.recall", "mean")
    assert found.points["value"].tolist() == [0.75, 1.0]


def test_run_of_one_build_has_a_history_and_says_why_no_verdict(tmp_path):
    write_run(tmp_path, a_run({"ttft": (1.0, 2.0)}))
    index = opened(tmp_path).index
    run = index.runs().iloc[0]
    assert run["sides"] == 1
    assert "one side alone cannot be compared" in run["trouble"]
    assert index.verdicts().empty
    assert len(index.series(*TTFT).points) == 2
    line = ttft(index.sparklines(5)).iloc[0]
    assert (line["baseline"], line["contender"]) == ("expected", BASELINE.label)


def test_failures_are_counted_by_side(tmp_path):
    run = with_failures(a_run({"ttft": (1.0,)}, {"ttft": (1.0,)}), 1, Phase.PERFORMANCE, 3)
    write_run(tmp_path, run)
    assert opened(tmp_path).index.runs()["failures"].tolist() == [0, 3]


def test_run_without_any_value_is_a_run_all_the_same(tmp_path):
    write_run(tmp_path, a_run({}, {}))
    index = opened(tmp_path).index
    assert index.counts == {"records": 1, "runs": 1, "values": 0, "verdicts": 0, "broken": 0}
    assert index.runs()["trouble"].tolist() == ["", ""]


def test_latest_verdict_is_the_newest_of_its_question(tmp_path):
    add(tmp_path, 2, slower=2.0)
    add(tmp_path, 1)
    add(tmp_path, 3, scenario=OTHER)
    index = opened(tmp_path).index
    latest = ttft(index.latest_verdicts())
    assert latest["run"].tolist() == ["00000002", "00000003"]
    assert latest["verdict"].iloc[0] == Verdict.REGRESSION.value
    assert not latest["stale"].any()
    assert len(ttft(index.verdicts())) == 3
    assert not index.latest_verdicts().duplicated(list(STANDING)).any()


def test_metric_that_the_newest_run_no_longer_has_is_stale(tmp_path):
    add(tmp_path, 1)
    run = a_run(
        {"ttft": (1.0, 2.0)},
        {"ttft": (1.0, 2.0)},
        id="0000000f",
        started_at=STARTED + timedelta(days=2),
    )
    write_run(tmp_path, run)
    latest = opened(tmp_path).index.latest_verdicts()
    stale = latest[latest["stale"]]
    assert set(stale["metric"]) == {"accuracy.recall", "contract.padded_rows_prefilling"}
    assert set(latest["metric"]) - set(stale["metric"]) == {"ttft"}


def test_verdict_holds_since_the_run_that_turned_it(tmp_path):
    for number, slower in ((1, 1.0), (2, 2.0), (3, 2.0), (4, 1.0), (5, 2.0), (6, 2.0)):
        add(tmp_path, number, slower=slower)
    add(tmp_path, 2 + 16, scenario=OTHER)
    turns = ttft(opened(tmp_path).index.turns()).set_index("scenario")["started_at"]
    assert turns[SCENARIO.id] == STARTED + timedelta(days=5)
    assert turns[OTHER.id] == STARTED + timedelta(days=18)


def test_verdicts_of_some_runs_are_those_among_all(tmp_path):
    records = [add(tmp_path, number, slower=number) for number in (1, 2)]
    add(tmp_path, 3, scenario=OTHER)
    index = opened(tmp_path).index
    every = index.verdicts()
    name = records[1].relative_to(tmp_path).as_posix()
    of_one = index.verdicts(records=[name])
    assert of_one.equals(every[every["record"] == name].reset_index(drop=True))
    assert set(index.verdicts(scenario=OTHER.id)["run"]) == {"00000003"}
    known_bad = index.verdicts(roles=["known-bad"])
    assert known_bad.equals(every)
    assert index.verdicts(roles=["comparison"]).empty
    bad = index.verdicts(ever=["regression"])
    assert set(bad["metric"]) == {"ttft"}
    assert set(bad["run"]) == {"00000001", "00000002"}


def test_sparkline_is_the_contenders_and_ends_with_the_newest(tmp_path):
    for number in (1, 2, 3):
        add(tmp_path, number)
    add(tmp_path, 4, builds=(BASELINE, BASELINE))
    index = opened(tmp_path).index
    levels = index.series(*TTFT).levels
    mine = levels[levels["build"] == CONTENDER.label]["value"].tolist()
    lines = ttft(index.sparklines(2)).set_index("contender")["medians"]
    assert lines[CONTENDER.label] == mine[-2:]
    assert lines[BASELINE.label] == levels["value"].tolist()[-1:]
    assert set(index.sparklines(2)["medians"].map(len)) == {1, 2}


def test_frames_given_out_can_be_changed_without_harm(tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    for frame, column in ((index.runs(), "run"), (index.latest_verdicts(), "verdict")):
        frame.loc[0, column] = "gone"
    assert index.runs()["run"].tolist() == ["00000001"] * 2
    assert "gone" not in set(index.latest_verdicts()["verdict"])


@pytest.mark.parametrize("ask", ["runs", "verdicts", "latest_verdicts", "turns", "cells", "broken"])
def test_documentation_names_every_column(tmp_path, ask):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    methods = [ask, *(["verdicts"] if ask == "latest_verdicts" else [])]
    text = "".join(getdoc(getattr(index, name)) or "" for name in methods)
    assert {name for name in getattr(index, ask)().columns if f"``{name}``" not in text} == set()
    assert set(CELL) <= set(opened(tmp_path).index.cells().columns)


def test_levels_of_a_scenario_are_those_of_its_series(tmp_path):
    for number in range(3):
        add(tmp_path, number)
    index = opened(tmp_path).index
    cells = index.cells()
    ((scenario, testbed),) = set(zip(cells["scenario"], cells["testbed"], strict=True))
    levels = index.levels(scenario, testbed)
    assert set(levels) == set(zip(cells["metric"], cells["statistic"], strict=True))
    for (metric, statistic), found in levels.items():
        expected = index.series(scenario, testbed, metric, statistic).levels
        pd.testing.assert_frame_equal(found, expected)
    assert index.levels("smoke/none", testbed) == {}


def test_points_of_a_series_are_its_levels(tmp_path):
    for number in (2, 0, 1):
        add(tmp_path, number)
    index = opened(tmp_path).index
    for cell in index.cells()[list(CELL)].itertuples(index=False, name=None):
        history = (one for name, one in zip(CELL, cell, strict=True) if name in HISTORY)
        levels = index.series(*history).levels.rename(columns={"run": "run_id"})
        points = index.points(*cell)
        levels["started_at"] = [moment.isoformat() for moment in levels["started_at"]]
        assert points
        assert points == levels[list(points[0])].to_dict("records")
    assert index.points("smoke/none", 1, "d", TESTBED.id, "ttft", "median") == []


def test_report_is_that_of_the_record(tmp_path):
    for number, slower in enumerate((1.0, 1.5)):
        add(tmp_path, number, slower=slower)
    index = opened(tmp_path).index
    for name in index.roles():
        body = index.report(name)
        assert body is not None
        expected = comparison_to_json(build_report(read_run(tmp_path / name)))
        assert body.decode() == json.dumps(expected)
    assert index.report("records/none.json") is None


def test_report_goes_with_its_record(tmp_path):
    path = add(tmp_path, 0)
    before = opened(tmp_path).index
    name = str(path.relative_to(tmp_path))
    assert before.report(name)
    path.unlink()
    assert opened(tmp_path).index.report(name) is None


def test_run_of_one_build_has_no_report(tmp_path):
    path = write_run(tmp_path, a_run({"ttft": (1.0, 2.0)}))
    assert opened(tmp_path).index.report(str(path.relative_to(tmp_path))) is None
