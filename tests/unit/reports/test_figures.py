"""Figures: their look, two curves with bands and loads, and lines that cross no gap."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from hybridwatch.analysis.change_point import ChangePoint, Drift, History, HistoryState
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Interval, Verdict
from hybridwatch.history.lines import Break, Line
from hybridwatch.metrics import find_metric
from hybridwatch.reports.figures.base import base_figure, escaped, faint, figure_on
from hybridwatch.reports.figures.curve import figure_curves
from hybridwatch.reports.figures.forest import _MARKS, _OTHER
from hybridwatch.reports.figures.lines import figure_lines
from hybridwatch.reports.figures.marks import build_marks, mark_gap
from tests.curves import LOADS, a_swept_run, even, tilted, tradeoff_in

TRACE = {"type": "scatter", "x": [1, 2], "y": [3, 4]}
METRIC = find_metric("ttft")
NOTHING = History()
Drawn = dict[str, Any]
START = pd.Timestamp("2026-09-01T02:00", tz="UTC")


def test_a_figure_says_nothing_of_defaults_nor_of_revisions() -> None:
    layout = base_figure([TRACE], xaxis={}, yaxis={}).to_dict()["layout"]
    # By an equal revision plotly would leave numbers out of sight that have changed.
    assert not {"template", "datarevision"} & layout.keys()
    assert "template" in go.Figure([TRACE]).to_dict()["layout"]


def test_a_figure_leaves_the_colours_of_words_and_ground_to_the_page() -> None:
    layout = base_figure([TRACE], xaxis={}, yaxis={}).to_dict()["layout"]
    assert "color" not in layout["font"]
    assert not {"paper_bgcolor", "plot_bgcolor"} & layout.keys()


def test_what_a_figure_says_of_its_axes_holds() -> None:
    figure = base_figure(
        [TRACE], xaxis={"gridcolor": "#123456"}, yaxis={"range": [0, 1]}, height=99
    )
    assert figure.layout.xaxis.gridcolor == "#123456"
    assert figure.layout.yaxis.range == (0, 1)
    assert figure.layout.yaxis.gridcolor is not None
    assert figure.layout.height == 99


def test_a_title_is_harmless_and_none_leaves_no_room() -> None:
    figure = base_figure([TRACE], xaxis={}, yaxis={}, title="<b>x</b> & y")
    assert figure.layout.title.text == escaped("<b>x</b> & y") == "&lt;b&gt;x&lt;/b&gt; &amp; y"
    assert base_figure([TRACE], xaxis={}, yaxis={}).layout.title.text is None


@pytest.mark.parametrize(("alpha", "told"), [(1, "rgba(255,0,16,1)"), (0.5, "rgba(255,0,16,0.5)")])
def test_faint_keeps_the_colour(alpha: float, told: str) -> None:
    assert faint("#ff0010", alpha) == told


def test_a_figure_on_a_page_has_its_colours_and_is_the_same_to_plotly_when_it_comes_again() -> None:
    figure = base_figure([TRACE], xaxis={}, yaxis={}, title="x")
    before = figure.to_dict()
    drawn = figure_on(figure, "#111111", "#eeeeee").to_dict()
    layout = drawn["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "#111111"
    assert layout["font"]["color"] == "#eeeeee"
    # Plotly takes any template, and arrays without a revision, for new ones: it would draw again.
    assert "template" not in layout
    assert "datarevision" in layout
    kept = {key: value for key, value in layout.items() if key in before["layout"]}
    assert kept == {**before["layout"], "font": layout["font"]}
    assert figure.to_dict() == before
    assert drawn["data"] == before["data"]


def drawn(*sides, **more):
    found = tradeoff_in(build_report(a_swept_run(*sides, **more)))
    return found, figure_curves((found.baseline, found.contender), found.crossings)


def traces(figure, mode):
    return [trace for trace in figure.data if trace.mode == mode]


def test_both_builds_have_a_line_with_each_load_and_a_band_around_it():
    found, figure = drawn(even, tilted, noise=0.03)
    lines, bands = traces(figure, "lines+markers+text"), traces(figure, "lines")
    assert [line.name for line in lines] == [
        f"{found.baseline.build} (baseline)",
        f"{found.contender.build} (contender)",
    ]
    for side, line, band in zip((found.baseline, found.contender), lines, bands, strict=True):
        assert list(line.text) == [str(load) for load in LOADS]
        for at, point in enumerate(side.points):
            assert line.y[at] == point.throughput.middle
            assert band.y[at] <= line.y[at] <= band.y[-1 - at]
            assert band.x[at] <= line.x[at] <= band.x[-1 - at]


def test_where_they_cross_is_shaded_and_the_objective_is_a_line():
    found, figure = drawn(even, tilted)
    ((low, high),) = found.crossings
    strips = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(strip.x0, strip.x1) for strip in strips] == [(low, high)]
    (rule,) = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert rule.x0 == rule.x1 == 1 / 0.03
    assert [note.text for note in figure.layout.annotations] == [" TPOT 30 ms"]


def test_a_point_says_what_is_known_of_it_and_nothing_else():
    _, figure = drawn(even, even, joules=2.0)
    (first,) = traces(figure, "lines+markers+text")[0].customdata[0]
    assert first.startswith("1 requests in flight<br>")
    assert "req/s keep the objective" in first
    assert "J per token" in first
    _, plain = drawn(even, even, slo={})
    (first,) = traces(plain, "lines+markers+text")[0].customdata[0]
    assert "objective" not in first
    assert "J per token" not in first
    assert not plain.layout.shapes


def test_a_hostile_build_is_escaped():
    found, _ = drawn(even, even)
    hostile = replace(found.baseline, build="<b>x</b>")
    figure = figure_curves((hostile,), ())
    assert {trace.legendgroup for trace in figure.data} == {"&lt;b&gt;x&lt;/b&gt;"}


def a_line(days, history=NOTHING) -> Line:
    n = len(days)
    levels = pd.DataFrame(
        {
            "started_at": [START + pd.Timedelta(days=day) for day in days],
            "value": np.linspace(0.1, 0.2, n),
            "low": 0.09,
            "high": 0.21,
            "n": 1,
            "build": "nightly",
            "run": [f"run{day}" for day in days],
            "release": "0.28.0",
            "fixes": "{}",
            "place": 0.0,
        }
    )
    points = pd.DataFrame({"level": [], "value": [], "n": [], "side": []})
    return Line("nightly", "", levels, points, history)


def lines_drawn(line: Line, *, over_releases: bool = False) -> Drawn:
    figure = figure_lines([replace(line, over_releases=over_releases)], METRIC)
    told: Drawn = json.loads(figure.to_json())
    return told


def joined(figure: Drawn) -> list[list[float]]:
    """The stretches of medians that a line joins."""
    (medians,) = (trace for trace in figure["data"] if trace["mode"].startswith("lines+"))
    stretches: list[list[float]] = [[]]
    for value, text in zip(medians["y"], medians["text"], strict=True):
        assert (value is None) == (text is None)
        stretches.append([]) if value is None else stretches[-1].append(value)
    return stretches


@pytest.mark.parametrize(
    ("days", "sizes"),
    [
        (range(9), [9]),
        ([0, 1, 2, 9, 10, 11], [3, 3]),  # a missing week
        ([0, 1, 2, 4, 5, 6], [3, 3]),  # a night on which the engine was dead
        ([0, 10], [1, 1]),
        ([0, 7, 14, 21], [4]),
        ([0, 0.1, 0.2, 1, 1.1], [5]),
    ],
)
def test_a_line_joins_only_what_has_no_gap_between(days, sizes) -> None:
    figure = lines_drawn(a_line(days))
    assert list(map(len, joined(figure))) == sizes
    band = next(trace for trace in figure["data"] if trace.get("fill") == "toself")
    assert band["x"].count(None) == len(sizes) - 1
    marks = [t for t in figure["data"] if t.get("marker", {}).get("symbol") == "x-thin"]
    assert sum(len(mark["x"]) for mark in marks) == len(sizes) - 1
    assert all("no ttft" in mark["hovertemplate"] for mark in marks)


def test_along_releases_everything_is_joined() -> None:
    assert list(map(len, joined(lines_drawn(a_line([0, 30, 90]), over_releases=True)))) == [3]


def test_a_single_run_between_gaps_is_drawn_in_a_long_line_too() -> None:
    modes = {t["mode"] for t in lines_drawn(a_line([*range(70), 90]))["data"] if t.get("name")}
    assert "lines+markers" in modes


def test_a_change_is_shaded_from_the_last_run_before_it_to_the_first_behind_it() -> None:
    interval = Interval(0.05, 0.15, 0.95)
    change = ChangePoint(5, 0.1, interval, HistoryState.CONFIRMED, first=4, last=7)
    drift = Drift(12, 10, 14, 19, -0.1)
    figure = lines_drawn(a_line(range(20), History((change,), (drift,))))
    spans = [(shape["x0"][:10], shape["x1"][:10]) for shape in figure["layout"]["shapes"]]
    assert spans == [("2026-09-04", "2026-09-08"), ("2026-09-12", "2026-09-20")]


def light(colour: str) -> float:
    """The relative luminance of a colour (WCAG 2.1)."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_a_verdict_is_told_by_a_colour_and_a_symbol_that_are_seen_on_either_ground() -> None:
    colours = [colour for colour, _ in (*_MARKS.values(), _OTHER)]
    for ground in ("#ffffff", "#0e1117"):
        for colour in colours:
            dark, bright = sorted((light(colour), light(ground)))
            assert (bright + 0.05) / (dark + 0.05) >= 3, colour
    every = [*_MARKS.values(), _OTHER]
    assert len({symbol for _, symbol in every}) == len(every)
    assert colours.count(_MARKS[Verdict.WORSE_WITHIN][0]) == 1


def test_a_rule_stands_for_a_release_and_not_for_each_night_on_the_way_to_it() -> None:
    line = a_line([0, 1, 2, 3, 4])
    nights = ["0.29.0", "0.30.0.dev36+g1a", "0.30.0.dev39+g2b", "0.30.0.dev41+g3c", "0.30.0"]
    marks = build_marks([replace(line, levels=line.levels.assign(release=nights))])
    assert [(mark.run, mark.label) for mark in marks] == [
        ("run1", "0.30.0.dev"),
        ("run4", "0.30.0"),
    ]


def heirs(old_level: float) -> tuple[Line, Line]:
    """A definition that ended, at a level of its own, and the one that took its place."""
    old, new = a_line(range(9)), a_line(range(20, 29))
    scale = old_level / old.levels["value"].mean()
    levels = old.levels.assign(**{name: old.levels[name] * scale for name in ("value", "low")})
    broke = Break(new.levels["started_at"].iloc[0], "run20", "the definition changed")
    levels["high"] = levels["value"].max()
    return replace(old, levels=levels), replace(new, breaks=(broke,))


def test_a_definition_that_ended_does_not_squeeze_its_heir() -> None:
    old, new = heirs(7.0)
    layout = figure_lines([new, old], METRIC).layout
    low, high = layout.yaxis.range
    assert low < 0.09 < 0.21 < high < 0.25
    assert layout.xaxis.range[0] > f"{old.levels['started_at'].max():%Y-%m-%d}"
    near = figure_lines([*heirs(0.15)], METRIC).layout
    assert near.yaxis.range is None, "beside it both are seen"
    assert near.xaxis.range[0] < f"{old.levels['started_at'].max():%Y-%m-%d}"


@pytest.mark.parametrize("days", [2, 400])
def test_a_gap_at_the_end_leaves_most_of_a_figure_to_what_was_measured(days: int) -> None:
    figure = figure_lines([a_line(range(20))], METRIC)
    first, last = map(pd.Timestamp, figure.layout.xaxis.range)
    now = START + pd.Timedelta(days=19 + days)
    mark_gap(figure, (START + pd.Timedelta(days=19)), now, "not measured")
    end = pd.Timestamp(figure.layout.xaxis.range[1])
    shade = figure.layout.shapes[-1]
    assert pd.Timestamp(shade.x1) <= end
    assert (pd.Timestamp(shade.x1) == now.tz_localize(None)) == (days == 2)
    assert (last - first) / (end - first) > 0.7
