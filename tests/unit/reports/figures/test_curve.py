"""The figure of two curves: bands over trials, loads beside points, where they cross."""

from dataclasses import replace

from hybridwatch.analysis.report import build_report
from hybridwatch.reports.figures.curve import figure_curves
from tests.curves import LOADS, a_swept_run, even, tilted, tradeoff_in


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
