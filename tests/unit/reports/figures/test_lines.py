"""Lines of a history: no line crosses a gap, and changes are shaded where they may have been."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hybridwatch.analysis.change_point import ChangePoint, Drift, History, HistoryState
from hybridwatch.analysis.verdict import Interval
from hybridwatch.history.lines import Line
from hybridwatch.metrics import find_metric
from hybridwatch.reports.figures.lines import figure_lines

METRIC = find_metric("ttft")
NOTHING = History()
Drawn = dict[str, Any]
START = pd.Timestamp("2026-09-01T02:00", tz="UTC")


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


def drawn(line: Line, *, over_releases: bool = False) -> Drawn:
    figure = figure_lines([line], METRIC, over_releases=over_releases)
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


def crosses(figure: Drawn) -> list[Drawn]:
    return [t for t in figure["data"] if t.get("marker", {}).get("symbol") == "x-thin"]


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
    figure = drawn(a_line(days))
    assert list(map(len, joined(figure))) == sizes
    band = next(trace for trace in figure["data"] if trace.get("fill") == "toself")
    assert band["x"].count(None) == len(sizes) - 1
    marks = crosses(figure)
    assert sum(len(mark["x"]) for mark in marks) == len(sizes) - 1
    assert all("no ttft" in mark["hovertemplate"] for mark in marks)


def test_along_releases_everything_is_joined() -> None:
    assert list(map(len, joined(drawn(a_line([0, 30, 90]), over_releases=True)))) == [3]


def test_a_single_run_between_gaps_is_drawn_in_a_long_line_too() -> None:
    modes = {t["mode"] for t in drawn(a_line([*range(70), 90]))["data"] if t.get("name")}
    assert "lines+markers" in modes


def test_a_change_is_shaded_from_the_last_run_before_it_to_the_first_behind_it() -> None:
    interval = Interval(0.05, 0.15, 0.95)
    change = ChangePoint(5, 0.1, interval, HistoryState.CONFIRMED, first=4, last=7)
    drift = Drift(12, 10, 14, 19, -0.1)
    figure = drawn(a_line(range(20), History((change,), (drift,))))
    spans = [(shape["x0"][:10], shape["x1"][:10]) for shape in figure["layout"]["shapes"]]
    assert spans == [("2026-09-04", "2026-09-08"), ("2026-09-12", "2026-09-20")]
