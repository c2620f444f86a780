"""From a CSV to series, and from a wrong cell to a message that names it."""

import math
import time

import pytest

from hybridwatch.errors import HistoryError
from hybridwatch.formats.read import history_csv
from hybridwatch.formats.read.history_csv import read_histories
from hybridwatch.metrics import Direction
from tests.mistakes import read_mistakes


def read(text: str):
    return read_histories(text.splitlines(keepends=True), "h.csv")


def test_two_columns_are_one_nameless_series() -> None:
    [series] = read("time,value\n1,10\n2,11.5\n")
    assert series.name is None
    assert (series.labels, series.values) == (("1", "2"), (10.0, 11.5))
    assert series.spreads is None


def test_columns_come_in_any_order_and_others_are_left_alone() -> None:
    [a, b] = read("commit,value, time ,series\nx,1,5,a\ny,2,5,b\nz,3,6,a\n")
    assert (a.name, a.labels, a.values) == ("a", ("5", "6"), (1.0, 3.0))
    assert (b.name, b.values) == ("b", (2.0,))


def test_dates_are_compared_as_moments_and_stay_as_written() -> None:
    [series] = read("time,value\n2026-11-21T09:00:00+01:00,1\n2026-11-21T08:30:00Z,2\n")
    assert series.labels == ("2026-11-21T09:00:00+01:00", "2026-11-21T08:30:00Z")
    [series] = read("time,value\n2026-11-21T09:00:00+01:00,1\n2026-11-21T08:00:00Z,2\n")
    assert series.values == (1.5,)


def test_no_clock_change_of_the_machine_counts(monkeypatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        [series] = read("time,value\n2026-03-29T02:30,1\n2026-03-29T03:10,2\n")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert series.values == (1.0, 2.0)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("9007199254740992", "9007199254740993"),
        ("1763716500123456788", "1763716500123456789"),
        ("0.1", "0.10000000000000000001"),
        ("2026-11-21T09:15:00.1234567Z", "2026-11-21T09:15:00.1234568Z"),
    ],
)
def test_times_that_are_one_float_are_kept_apart(earlier, later) -> None:
    [series] = read(f"time,value\n{earlier},1\n{later},2\n")
    assert (series.labels, series.values) == ((earlier, later), (1.0, 2.0))
    with pytest.raises(HistoryError, match="line 3: time: expected a time not before"):
        read(f"time,value\n{later},1\n{earlier},2\n")


def test_one_time_written_in_two_ways_is_one_time() -> None:
    [series] = read("time,value\n1,10\n1.0,12\n1e0,20\n")
    assert series.values == (12.0,)


def test_nothing_is_read_beyond_the_most_times_of_a_series(monkeypatch) -> None:
    monkeypatch.setattr(history_csv, "MOST_POINTS", 3)
    rows = ["time,value\n", *(f"{at},1\n" for at in range(4)), "5,fast\n"]
    with pytest.raises(HistoryError, match="line 5: expected at most 3 times a series"):
        read("".join(rows))
    repeats = "time,value\n" + "1,2\n" * 9
    assert len(read(repeats)[0].values) == 1


def test_rows_of_one_time_are_repeats() -> None:
    [series] = read("time,value\n1,10\n1,12\n1,20\n2,5\n2,7\n")
    assert series.values == (12.0, 6.0)
    assert series.spreads is not None
    assert series.spreads[1] == pytest.approx(math.sqrt(2) / math.sqrt(2))
    assert series.spreads[0] == pytest.approx(math.sqrt(28) / math.sqrt(3))


def test_one_time_without_repeats_leaves_the_spread_unknown() -> None:
    [series] = read("time,value\n1,10\n1,12\n2,5\n")
    assert (series.values, series.spreads) == ((11.0, 5.0), None)


def test_empty_lines_and_quotes_are_no_trouble() -> None:
    [series] = read('series,time,value\r\n"a, b",1,2\r\n\r\n"a, b",2,3\r\n')
    assert (series.name, series.values) == ("a, b", (2.0, 3.0))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: expected a header with the columns time and value"),
        ("time,value\n1," + "x" * 999 + "\n", "found '" + "x" * 40 + "\u2026'"),
        *read_mistakes("history"),
    ],
)
def test_wrong_input_is_one_line_that_names_the_place(text, told) -> None:
    with pytest.raises(HistoryError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("h.csv: ")
    assert told in message
    assert "\n" not in message


def test_numbers_of_two_digests_are_two_series() -> None:
    lines = ["series,digest,time,value", "a,1111111100,1,1", "a,22222222,2,9", "b,11111111,1,1"]
    found = read_histories(lines, "x.csv")
    assert [one.name for one in found] == ["a (digest 11111111)", "a (digest 22222222)", "b"]
    (alone,) = read_histories(["digest,time,value", "1,1,5"], "x.csv")
    assert alone.name is None


def test_each_series_says_which_way_is_better_or_leaves_it_open() -> None:
    rows = ["series,time,value,better", "a,1,1,higher", "b,1,1,lower", "c,1,1,", "a,2,1,higher"]
    found = read_histories(rows, "x.csv")
    assert [one.better for one in found] == [Direction.HIGHER, Direction.LOWER, None]
