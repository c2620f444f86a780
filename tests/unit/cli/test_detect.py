"""detect: from a CSV to change points, text, JSON and exit status."""

import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.analysis.change_point.examine import LARGEST, MOST_POINTS
from hybridwatch.records.store import write_run
from tests.builders import SCENARIO, STARTED, a_build, a_run, noisy
from tests.command_line import run_verb

CHANGED_AT = 40


def a_csv(step: float, n: int = 60, name: str = "", seed: int = 1, times=range(10**6)) -> list[str]:
    """Rows of a series whose level changes by a factor at point 40."""
    rng = random.Random(seed)
    values = [
        0.04 * rng.lognormvariate(0, 0.01) * (step if at >= CHANGED_AT else 1) for at in range(n)
    ]
    start = f"{name}," if name else ""
    return [f"{start}{time},{value!r}" for time, value in zip(times, values, strict=False)]


@pytest.fixture
def detect(tmp_path):
    """Write rows below a header to a file and examine it."""

    def call(header: str, rows: list[str], *options: str, status: int | None = None):
        path = tmp_path / "history.csv"
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return run_verb("detect", path, *options, status=status)

    return call


def test_a_slower_level_is_found_and_is_status_1(detect) -> None:
    answer = detect("time,value", a_csv(1.1), "--json", status=1)
    told = json.loads(answer.stdout)
    assert (told["schema_version"], told["bad_news"]) == (1, True)
    [series] = told["series"]
    assert (series["series"], series["n"], series["worse"]) == (None, 60, True)
    [point] = series["points"]
    assert point["index"] == CHANGED_AT
    assert point["time"] == "40"
    assert point["state"] == "confirmed"
    assert point["effect"] == pytest.approx(0.1, abs=0.02)
    assert point["interval"]["low"] < point["effect"] < point["interval"]["high"]


def test_the_same_change_is_good_news_where_higher_is_better(detect) -> None:
    answer = detect("time,value", a_csv(1.1), "--better", "higher", status=0)
    assert "confirmed, better" in answer.output


def test_the_column_better_says_of_each_series_what_is_bad_news(detect) -> None:
    rows = [
        *(f"{row},higher" for row in a_csv(1.1, name="rate")),
        *(f"{row},lower" for row in a_csv(1.1, name="wait")),
        *(f"{row}," for row in a_csv(1.1, name="untold")),
    ]
    header = "series,time,value,better"
    told = json.loads(detect(header, rows, "--json").stdout)["series"]
    assert [one["worse"] for one in told] == [False, True, True]
    told = json.loads(detect(header, rows, "--json", "--better", "higher").stdout)["series"]
    assert not any(one["worse"] for one in told)


def test_a_drift_is_told_with_its_rate_and_blames_no_commit(detect) -> None:
    rows = [row.split(",") for row in a_csv(1.0, 90)]
    drifting = [
        f"{time},{float(value) * (1 + 0.08 * max(0, int(time) - 49) / 40)!r}"
        for time, value in rows
    ]
    answer = detect("time,value", drifting, status=1)
    words = " ".join(answer.output.split())
    assert "The level drifts by +0.2" in words
    assert "no single commit is to blame" in words
    assert "confirmed" not in words.replace("last confirmed", "")
    told = json.loads(detect("time,value", drifting, "--json").stdout)["series"][0]
    (drift,) = told["drifts"]
    assert told["points"] == []
    assert told["drift"] == drift["effect"] == pytest.approx(0.08, abs=0.02)
    assert drift["first"] <= 50 <= drift["last"]
    assert (drift["end"], drift["end_time"]) == (89, "89")


def test_an_unsure_place_is_reported_as_a_range_of_times(detect) -> None:
    rng = random.Random(5)
    rows = [f"{at},{rng.gauss(10, 0.3) + (at >= 40) * 0.5!r}" for at in range(80)]
    [point] = json.loads(detect("time,value", rows, "--json").stdout)["series"][0]["points"]
    assert point["first"] < point["last"]
    assert point["first"] <= 40 <= point["last"]
    assert (point["first_time"], point["last_time"]) == (str(point["first"]), str(point["last"]))
    words = " ".join(detect("time,value", rows).output.split())
    assert f"came from {point['first']} to {point['last']} (95 %)" in words


def test_two_levels_of_starts_are_reported_with_both(detect) -> None:
    rng = random.Random(3)
    levels = [rng.choice((0.04, 0.05)) for _ in range(60)]
    rows = [
        f"{at},{level * rng.lognormvariate(0, 0.01)!r}"
        for at, level in enumerate(levels)
        for _ in range(5)
    ]
    words = " ".join(detect("time,value", rows).output.split())
    assert "Runs fall on one of two levels, 0.04" in words
    assert "and 0.05" in words or "and 0.049" in words


def test_what_went_back_is_no_bad_news(detect) -> None:
    there, back = a_csv(1.1), a_csv(1.0, 120, seed=2)[60:]
    answer = detect("time,value", there + back, "--json")
    told = json.loads(answer.stdout)
    assert [point["index"] for point in told["series"][0]["points"]] == [CHANGED_AT, 60]
    assert (answer.exit_code, told["bad_news"]) == (0, False)


def test_nothing_in_a_steady_series(detect) -> None:
    answer = detect("time,value", a_csv(1.0))
    assert (answer.exit_code, answer.output) == (0, "No change point in 1 series.\n")


def test_each_series_is_distinguished_and_the_rest_is_counted(detect) -> None:
    rows = [*a_csv(1.1, name="slow"), *a_csv(1.0, name="steady"), *a_csv(1.0, 7, name="short")]
    random.Random(3).shuffle(rows)
    rows.sort(key=lambda row: int(row.split(",")[1]))  # series alternate, times ascend
    answer = detect("series,time,value", rows, status=1)
    assert "slow     40" in answer.output
    assert "short: Not enough data: 7 points, at least 10 needed." in answer.output
    assert "Worse since the last confirmed change: slow (1 of 3 series)." in answer.output
    assert "steady" not in answer.output


def test_dates_are_shown_as_written(detect) -> None:
    dates = [f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T03:00Z" for day in range(60)]
    answer = detect("time,value", a_csv(0.9, times=dates), status=0)
    assert dates[CHANGED_AT] in answer.output
    assert "-10." in answer.output or "-9." in answer.output


def test_kind_chooses_between_ratio_and_difference(detect) -> None:
    counts = [f"{time},{3 if time < 4 else 5}" for time in range(6)]
    told = json.loads(detect("time,value", counts, "--kind", "exact", "--json").stdout)
    [point] = told["series"][0]["points"]
    assert (point["index"], point["effect"]) == (4, 2.0)
    assert "+2 (+2 to +2)" in detect("time,value", counts, "--kind", "exact").output
    unsaid = json.loads(detect("time,value", counts, "--json").stdout)
    assert unsaid["series"][0]["points"] == []


def test_standard_input_is_a_dash(detect) -> None:
    text = "\ufefftime,value\r\n" + "\r\n".join(a_csv(1.1)) + "\r\n"
    assert "confirmed, worse" in run_verb("detect", "-", input=text.encode(), status=1).output


@pytest.mark.parametrize(
    ("header", "rows", "told"),
    [
        ("time,speed", ["1,2"], "history.csv: line 1: expected a header"),
        ("time,value", ["1,2", "2,nan"], "history.csv: line 3: value: expected a finite number"),
        (
            "time,value",
            [f"{at},{'-' * (at % 2)}1.7e308" for at in range(100)],
            "history.csv: line 2: value: expected a number from -1e+150 to 1e+150, found '1.7e308'",
        ),
        ("time,value", ["2,2", "1,2"], "history.csv: line 3: time: expected a time not before"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(detect, header, rows, told) -> None:
    answer = detect(header, rows)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_value_the_kind_does_not_allow_names_the_series(detect) -> None:
    answer = detect("series,time,value", [f"ttft,{at},0" for at in range(12)], "--kind", "time")
    assert answer.exit_code == 2
    assert "history.csv: series ttft: values[0]: expected more than 0, found 0" in answer.stderr


@pytest.mark.parametrize("content", [None, b"time,value\n1,\xff\n"])
def test_unreadable_files_are_one_line(tmp_path, content) -> None:
    path = tmp_path / "x.csv"
    if content is not None:
        path.write_bytes(content)
    assert run_verb("detect", path, status=2).stderr.startswith(f"hybridwatch: {path}: ")


def test_hostile_names_do_not_steer_the_terminal(detect) -> None:
    answer = detect("series,time,value", a_csv(1.1, name="[red]x\x1b[31m"))
    assert "\x1b" not in answer.output
    assert "[red]x" in answer.output


def test_series_that_are_too_short_are_reported_once(detect) -> None:
    rows = [f"{name},{at},1.0" for name in "abc" for at in range(2)]
    answer = detect("series,time,value", rows, status=0)
    assert answer.output.count("Not enough data") == 1
    assert "a and 2 more: Not enough data: 2 points, at least 10 needed." in answer.output
    said = " ".join(answer.output.split())
    assert (
        "Too short to look for a change: 3 series, the longest of 2 times; 10 are needed." in said
    )


def test_help_names_the_limits() -> None:
    text = " ".join(run_verb("detect", "--help").output.split())
    assert f"at most {MOST_POINTS:,} times" in text
    assert f"at most {LARGEST:g}".replace("+", "") in text


@pytest.mark.parametrize("times", [100_000, pytest.param(MOST_POINTS, marks=pytest.mark.slow)])
def test_as_many_times_as_may_be_are_searched(detect, times) -> None:
    changed = times * 7 // 10
    rows = [f"{10**18 + at},{1.05 if at >= changed else 1.0}" for at in range(times)]
    assert f"{10**18 + changed}" in detect("time,value", rows, status=1).output


def test_what_is_exported_of_two_loads_is_two_series(detect, tmp_path) -> None:
    for number in range(80):
        load = 64 if number % 2 else 1
        write_run(
            tmp_path / "results",
            a_run(
                {"ttft": noisy(0.9 if number % 2 else 0.1, 9, 0.01, seed=number)},
                builds=(a_build(f"nightly-{STARTED + timedelta(days=number):%Y%m%d}"),),
                id=f"{number:08x}",
                scenario=replace(SCENARIO, digest=f"{load:064d}"[::-1]),
                started_at=STARTED + timedelta(days=number),
            ),
        )
    words = ["export", "--results", str(tmp_path / "results"), "--to", "csv", "--metric", "ttft"]
    exported = run_verb(*words, status=0)
    header, *rows = exported.stdout.splitlines()
    told = json.loads(detect(header, rows, "--json").stdout)
    named = [one["series"] for one in told["series"] if one["series"].split()[2] == "nightly"]
    assert sum("ttft_median" in name for name in named) == 2
    assert not any(one["points"] for one in told["series"])
    # Without the column that tells them apart the loads would be one restless series.
    at = header.split(",").index("digest")
    without = [",".join(cell for n, cell in enumerate(row.split(",")) if n != at) for row in rows]
    mixed = json.loads(detect(header.replace(",digest", ""), without, "--json").stdout)
    assert len(mixed["series"]) < len(told["series"])
