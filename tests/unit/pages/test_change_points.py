"""Where histories changed: commits are those of the whole range, and a drift blames none."""

from types import SimpleNamespace
from typing import Any

import pandas as pd

from hybridwatch.analysis.change_point import ChangePoint, Drift, History, HistoryState
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.verdict import Interval
from hybridwatch.history.lines import Line
from hybridwatch.metrics import find_metric
from hybridwatch.pages.document import Section, Table
from hybridwatch.pages.screens.histories import change_points

SUBJECT = Subject(find_metric("ttft"), "median")


def a_line(history: History) -> Line:
    """Twenty nights, each of the commit of its number."""
    nights = range(20)
    levels = pd.DataFrame(
        {
            "started_at": [pd.Timestamp(f"2026-09-{at + 1:02}", tz="UTC") for at in nights],
            "value": [0.1 + at / 1000 for at in nights],
            "run": [f"run{at}" for at in nights],
            "side": 0,
            "build": "nightly",
            "release": [f"0.28.1.dev{at}+g{at:07x}" for at in nights],
            "fixes": "{}",
        }
    )
    return Line("nightly", "", levels, pd.DataFrame(), history)


def told(history: History) -> str:
    source: Any = SimpleNamespace(ago=str)
    drawn: Any = [(SUBJECT, [a_line(history)], None)]
    (section,) = change_points(drawn, (), source)
    assert isinstance(section, Section)
    (table,) = section.blocks
    assert isinstance(table, Table)
    (row,) = table.rows
    return repr(row)


def test_commits_are_those_from_the_last_run_before_the_range_to_the_run_at_its_end() -> None:
    interval = Interval(0.05, 0.15, 0.95)
    words = told(History((ChangePoint(5, 0.1, interval, HistoryState.CONFIRMED, first=4, last=7),)))
    assert f"{3:07x}...{7:07x}" in words
    assert "5 Sep to 8 Sep, 95 %" in words
    assert "run3#0" in words
    assert "run7#0" in words
    assert all(f"release 0.28.1.dev{at}+" in words for at in (4, 7))
    assert "; 2 more; " in words, "the commits name the rest"


def test_a_drift_is_reported_without_commits() -> None:
    words = told(History(drifts=(Drift(9, 6, 11, 19, 0.08),)))
    assert "drifts, worse" in words
    assert "no single commit" in words
    assert "compare" not in words
    assert "7 Sep to 12 Sep, 95 %" in words
