from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.database.queries import Index, open_index
from hybridwatch.history.lines import MOST_POINTS, Line, build_lines, releases_in_order
from hybridwatch.metrics import find_metric
from hybridwatch.pages.address import read_query
from hybridwatch.pages.document import (
    Chart,
    ChoiceField,
    Document,
    Filters,
    Notice,
    Paragraph,
    Table,
    build_cell,
    plain,
)
from hybridwatch.pages.screens import ScreenSource, open_view
from hybridwatch.records.identity import EngineBuild, FixState
from hybridwatch.records.store import write_run
from tests.store_builders import REGRESSED, STARTED, Plan, build, run
from tests.unit.pages.suite_stores import of_kind

NIGHTS = 24
STEP_AT = 12
SMALL = Plan(documents=4, performance_trials=2)
NOW = STARTED + timedelta(days=NIGHTS, hours=3)
CELL = ("smoke/padded-graph-rows", "epyc-9654-2c-linux")


def night(at: int, *, slowdown: float, release: str = "0.27.1") -> Plan:
    return replace(
        SMALL, seed=at, started_at=STARTED + timedelta(days=at), slowdown=slowdown, release=release
    )


def write_nights(results: Path, *, step: float, releases: Sequence[str] = ()) -> None:
    """A night each: a baseline that stays, and a nightly build that changes half-way."""
    for at in range(NIGHTS):
        slowdown = step if at >= STEP_AT else 1.0
        release = releases[at] if releases else "0.27.1"
        made = run(night(at, slowdown=slowdown))
        nightly: EngineBuild = replace(build(), label="nightly", name="nightly", release=release)
        write_run(results, replace(made, builds=(made.builds[0], nightly)))


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("stepped")
    releases = ["0.27.1"] * STEP_AT + ["0.28.0"] * (NIGHTS - STEP_AT)
    write_nights(results, step=1.4, releases=releases)
    return results


@pytest.fixture(scope="module")
def level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("level")
    write_nights(results, step=1.0)
    return results


def opened(results: Path, query: str = "") -> Document:
    source = ScreenSource(results, open_index(results), NOW)
    return open_view(source, read_query("scenario", query))


def test_empty_store_says_what_to_do(tmp_path: Path) -> None:
    document = opened(tmp_path)
    assert "No runs yet" in plain(of_kind(document, Paragraph)[0].line)
    assert of_kind(document, Chart) == []


def test_one_record_is_drawn_without_a_change_point(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan()))
    document = opened(tmp_path)
    charts = of_kind(document, Chart)
    assert charts
    assert all("too few to look for changes" in chart.description for chart in charts)
    assert document.complaints == ()
    assert [t.caption for t in of_kind(document, Table)] == ["Other metrics", "Runs"]


def test_a_broken_record_is_reported_and_the_rest_is_drawn(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan()))
    (tmp_path / "records" / "epyc-9654-2c-linux" / "20261121T000000Z-x-1.json").write_text("{")
    document = opened(tmp_path)
    titles = [notice.title for notice in of_kind(document, Notice)]
    assert titles == ["1 expected measurement missing", "1 record could not be read"]
    assert of_kind(document, Chart)


def test_the_time_in_which_nothing_was_measured_is_a_gap_in_the_charts(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan(started_at=NOW - timedelta(days=5))))
    for chart in of_kind(opened(tmp_path), Chart):
        (gap,) = (shape for shape in chart.figure.layout.shapes if shape.type == "rect")
        assert (gap.x0[:10], gap.x1[:10]) == (f"{NOW - timedelta(days=5):%F}", f"{NOW:%F}")


def test_what_was_measured_today_has_no_gap(tmp_path: Path) -> None:
    write_run(tmp_path, run(replace(Plan(bad_contender=False), started_at=NOW)))
    charts = of_kind(opened(tmp_path), Chart)
    assert charts
    assert not any(shape.type == "rect" for c in charts for shape in c.figure.layout.shapes)


def test_a_planted_step_is_confirmed_and_named_with_the_release_it_came_with(stepped: Path) -> None:
    document = opened(stepped, "metric=output_throughput&metric=ttft+median")
    changes = next(t for t in of_kind(document, Table) if t.caption == "Change points")
    told = [[plain(build_cell(cell).content) for cell in row] for row in changes.rows]
    found = [row for row, cells in zip(told, changes.rows, strict=True) if row[0].endswith("worse")]
    assert sorted(row[1] for row in found) == ["output_throughput", "ttft median"]
    assert all(row[0] == "regression worse" for row in found)
    assert all("0.28.0" in row[4] for row in found)
    assert all(plain(build_cell(row[1]).under) == "nightly" for row in changes.rows)
    charts = of_kind(document, Chart)
    assert all("1 confirmed change" in chart.description for chart in charts)


def test_a_null_series_has_no_confirmed_change(level: Path) -> None:
    document = opened(level, "metric=output_throughput&metric=ttft+median&metric=tpot+median")
    assert all("confirmed" not in chart.description for chart in of_kind(document, Chart))
    assert all("no change point" in chart.description for chart in of_kind(document, Chart))
    assert "Change points" not in [t.caption for t in of_kind(document, Table)]


def test_the_figure_marks_the_change_and_the_release(stepped: Path) -> None:
    (chart,) = of_kind(opened(stepped, "metric=output_throughput&build=nightly"), Chart)
    symbols = [trace.marker.symbol for trace in chart.figure.data]
    assert [each for each in symbols if isinstance(each, tuple)] == [("triangle-down",)]
    assert [a.text for a in chart.figure.layout.annotations] == ["0.28.0"]
    assert len(set(map(len, chart.data.values()))) == 1
    assert set(chart.data["line"]) == {"nightly"}


@pytest.mark.parametrize("along", ["time", "release"])
def test_every_point_that_can_be_clicked_names_its_run(stepped: Path, along: str) -> None:
    (chart,) = of_kind(opened(stepped, f"metric=output_throughput&along={along}"), Chart)
    assert chart.opens_runs
    pointed = [trace for trace in chart.figure.data if trace.hoverinfo != "skip"]
    rules = {"lines"} if along == "time" else set()
    assert {trace.mode for trace in pointed} == {"markers", "lines+markers"} | rules
    for trace in pointed:
        assert len(trace.customdata) == len(trace.x)
        assert {told[-1] for told in trace.customdata} <= set(chart.data["run"])
    # A trial is that of its run, not only of some run.
    ids = dict(zip(chart.data["value"], chart.data["run"], strict=True))
    trials = [trace for trace in pointed if trace.name and trace.mode == "markers"]
    assert sum(len(trace.x) for trace in trials) == len(chart.data["value"])
    for trace in trials:
        assert [told[-1] for told in trace.customdata] == [ids[value] for value in trace.y]


def test_over_releases_builds_that_differ_in_release_make_one_line(tmp_path: Path) -> None:
    for at, release in enumerate(("0.9.2", "0.27.1", "0.10.0")):
        write_run(tmp_path, run(night(at, slowdown=1.0, release=release)))
    document = opened(tmp_path, "along=release&metric=output_throughput")
    (chart,) = of_kind(document, Chart)
    assert set(chart.data["line"]) == {"cpu-*"}
    assert chart.figure.layout.xaxis.ticktext == ("0.9.2", "0.10.0", "0.27.1")
    asked = opened(tmp_path, "along=release&metric=output_throughput&build=cpu-0.27.1")
    assert asked.complaints == ()
    assert of_kind(asked, Chart)[0].data == chart.data


def test_releases_are_ordered_as_people_do() -> None:
    given = ["0.10.0", "0.9.1", "0.28.0", "0.28.0rc1", "0.9.1", "main"]
    assert releases_in_order(given) == ["main", "0.9.1", "0.10.0", "0.28.0rc1", "0.28.0"]


def test_nightly_builds_stand_in_the_order_of_their_nights() -> None:
    given = [f"0.28.1.dev{night}+g{night:07x}" for night in range(2, 30)]
    assert releases_in_order(given[::-1]) == given


@pytest.mark.parametrize("along", ["time", "release"])
def test_names_of_many_releases_do_not_touch_and_each_is_reported_on_hover(tmp_path, along):
    releases = [f"0.28.1.post{night}+g{night:07x}" for night in range(NIGHTS)]
    write_nights(tmp_path, step=1.0, releases=releases)
    query = f"metric=output_throughput&build=nightly&along={along}"
    figure = of_kind(opened(tmp_path, query), Chart)[0].figure
    if along == "release":
        left, right = figure.layout.xaxis.range
        names, places = figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals
    else:
        left, right = (np.datetime64(edge) for edge in figure.layout.xaxis.range)
        names = [label.text for label in figure.layout.annotations]
        places = [np.datetime64(label.x) for label in figure.layout.annotations]
        (rules,) = (trace for trace in figure.data if trace.mode == "lines" and trace.text)
        assert set(rules.text) == {f"release {release}" for release in releases[1:]}
    assert 2 <= len(names) < 6
    # On a phone a figure is 280 pixels wide, and a letter takes 6.
    middles = [280 * ((place - left) / (right - left)) for place in places]
    gaps = np.diff(middles)
    assert all(gap > 6 * len(names[-1]) for gap in gaps[:-1])
    assert "0.28.1.post23" in names or along == "release"


def test_a_few_releases_are_all_named(stepped: Path) -> None:
    (chart,) = of_kind(opened(stepped, "metric=output_throughput&along=release"), Chart)
    assert chart.figure.layout.xaxis.ticktext == ("0.27.1", "0.28.0")


def test_an_accuracy_axis_ends_at_all_and_a_count_of_none_has_no_fractions(level: Path) -> None:
    accuracy, contract = of_kind(
        opened(level, "metric=accuracy.recall&metric=contract.padded_rows_prefilling"), Chart
    )
    assert accuracy.figure.layout.yaxis.autorangeoptions.clipmax == pytest.approx(1, abs=0.05)
    assert contract.figure.layout.yaxis.dtick == 1
    assert contract.figure.layout.yaxis.autorangeoptions.include == 1


def test_a_control_is_no_verdict_among_the_runs(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    runs = next(t for t in of_kind(opened(tmp_path), Table) if t.caption == "Runs")
    assert plain(build_cell(runs.rows[0][0]).content) == "control"


def test_wrong_values_are_reported_and_something_valid_is_shown(stepped: Path) -> None:
    query = "testbed=y&version=9&metric=z&build=w&along=v&runs=1&page=2"
    document = opened(stepped, query)
    assert len(document.complaints) == 6  # all but the version, which has no page of its own
    assert of_kind(document, Chart)


def test_no_other_scenario_is_shown_for_one_that_is_not_there(stepped: Path) -> None:
    document = opened(stepped, "scenario=smoke/gone")
    assert document.title == "No such scenario"
    assert document.address.values("scenario") == ("smoke/gone",)
    assert not of_kind(document, Chart)


def test_what_is_drawn_by_default_is_shown_as_chosen_but_not_pinned(stepped: Path) -> None:
    document = opened(stepped)
    (filters,) = of_kind(document, Filters)
    chosen = {c.parameter: c.chosen for c in filters.choices if isinstance(c, ChoiceField)}
    assert len(chosen["metric"]) == len(of_kind(document, Chart)) == 4
    assert document.address.values("metric") == ()
    assert document.address.values("scenario") == ("smoke/padded-graph-rows",)


def test_the_other_way_to_look_along_and_more_runs_are_known_as_likely(stepped: Path) -> None:
    other, more = opened(stepped, "build=nightly").likely
    assert other.values("along") == ("release",)
    assert other.values("build") == more.values("build") == ("nightly",)
    assert more.values("runs") == ("200",)
    back, _ = opened(stepped, other.query()).likely
    assert "along" not in dict(back.parameters)
    assert opened(stepped, back.query()).address == back


def line(index: Index, metric: str, statistic: str, newest: int = 200) -> Line:
    series = index.series(*CELL, metric, statistic)
    (found,) = build_lines(
        series, find_metric(metric), newest=newest, over_releases=False, builds=["nightly"]
    )
    return found


def test_a_step_is_found_where_it_was_planted(stepped: Path) -> None:
    index = open_index(stepped)
    (point,) = line(index, "output_throughput", "median").history.points
    assert (point.index, point.state) == (STEP_AT, HistoryState.CONFIRMED)
    assert point.effect == pytest.approx(1 / 1.4 - 1, abs=0.05)


def test_of_a_contract_changes_whether_it_is_broken_not_how_often(tmp_path: Path) -> None:
    broken = (0, 0, 30, 41, 27, 41, 0, 0)
    for at, rows in enumerate(broken):
        plan = replace(night(at, slowdown=1.0), flagged_rows=(0, rows), bad_contender=True)
        made = run(plan)
        nightly = replace(build(), label="nightly", name="nightly")
        write_run(tmp_path, replace(made, builds=(made.builds[0], nightly)))
    found = line(open_index(tmp_path), "contract.padded_rows_prefilling", "value")
    assert found.levels["value"].tolist() == list(broken)
    assert [(point.index, point.effect) for point in found.history.points] == [(2, 30), (6, -41)]


def test_only_the_newest_runs_are_shown_and_examined(stepped: Path) -> None:
    found = line(open_index(stepped), "output_throughput", "median", newest=STEP_AT)
    assert len(found.levels) == NIGHTS - STEP_AT
    assert found.history.points == ()


def test_the_band_holds_the_median_and_is_all_trials_where_there_are_few(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan(performance_trials=3)))
    index = open_index(tmp_path)
    series = index.series(*CELL, "output_throughput", "median")
    (found,) = build_lines(
        series, find_metric("output_throughput"), newest=9, over_releases=False, builds=()
    )
    level = found.levels.iloc[0]
    values = series.points.loc[series.points["side"] == level["side"], "value"]
    assert level["n"] < 6
    assert (level["low"], level["high"]) == (values.min(), values.max())
    assert level["low"] <= level["value"] <= level["high"]


def test_a_fix_that_one_run_did_not_know_of_did_not_change(tmp_path: Path) -> None:
    known, lacking, present = "padded-rows-prefilling", FixState.LACKING, FixState.PRESENT
    for at, fixes in enumerate(({known: lacking}, {known: present, "dummy-run-padding": lacking})):
        made = run(night(at, slowdown=1.0))
        nightly = replace(build(), label="nightly", name="nightly", fixes=fixes)
        write_run(tmp_path, replace(made, builds=(made.builds[0], nightly)))
    series = open_index(tmp_path).series(*CELL, "output_throughput", "median")
    metric = find_metric("output_throughput")
    (line,) = build_lines(series, metric, newest=9, over_releases=False, builds=("nightly",))
    assert [step.text for step in line.steps] == ["padded-rows-prefilling: lacking \u2192 present"]


def test_many_trials_are_thinned_but_extremes_and_medians_stay(tmp_path: Path) -> None:
    write_run(tmp_path, run(Plan(performance_trials=MOST_POINTS, documents=2)))
    index = open_index(tmp_path)
    series = index.series(*CELL, "output_throughput", "median")
    found = build_lines(series, find_metric("output_throughput"), newest=9, over_releases=False)
    drawn = sum(len(each.points) for each in found)
    assert drawn <= MOST_POINTS + 4 < len(series.points)
    for each in found:
        assert len(each.levels) == len(series.levels[series.levels["build"] == each.name])
        whole = series.points.loc[series.points["build"] == each.name, "value"]
        assert each.points["value"].min() == whole.min()
        assert each.points["value"].max() == whole.max()
    assert np.isfinite(found[0].levels["low"]).all()


@pytest.fixture(scope="module")
def redefined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario that asks for more from half-way on, and a nightly under dated labels."""
    results = tmp_path_factory.mktemp("redefined")
    for at in range(NIGHTS):
        made = run(night(at, slowdown=1.4 if at >= STEP_AT else 1.0))
        label = f"nightly-{made.started_at:%Y%m%d}"
        nightly = replace(build(), label=label, name=label)
        asked = replace(made.scenario, version=2, digest="2" * 64)
        scenario = asked if at >= STEP_AT else made.scenario
        write_run(results, replace(made, builds=(made.builds[0], nightly), scenario=scenario))
    return results


def test_a_changed_definition_is_a_break_and_no_change_point(redefined: Path) -> None:
    document = opened(redefined, "metric=output_throughput")
    assert "Change points" not in [table.caption for table in of_kind(document, Table)]
    said = [plain(each.line) for each in of_kind(document, Paragraph)]
    breaks = [text for text in said if text.startswith("New series since")]
    assert len(breaks) == 1
    assert breaks[0].endswith(": version 1 \u2192 2. Nothing is compared across.")
    (chart,) = of_kind(document, Chart)
    assert [word in chart.description for word in ("nightly (version 1)", "nightly (version 2)")]
    lines = [each for each in chart.figure.data if str(each.name).startswith("nightly (version")]
    drawn = [each for each in lines if "lines" in each.mode]
    assert sorted(len(each.x) for each in drawn) == [STEP_AT, NIGHTS - STEP_AT]
    rules = [each.text for each in chart.figure.data if each.yaxis == "y2"]
    assert any("new series: version 1 \u2192 2" in text for texts in rules for text in texts)


def test_a_link_to_one_night_of_a_line_opens_the_line(redefined: Path) -> None:
    last = f"nightly-{STARTED + timedelta(days=NIGHTS - 1):%Y%m%d}"
    document = opened(redefined, f"metric=output_throughput&build={last}&version=2")
    assert document.complaints == ()
    assert document.address.values("build") == ("nightly",)
