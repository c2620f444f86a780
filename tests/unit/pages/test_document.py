from datetime import UTC, datetime, timedelta, timezone

import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Cell,
    Chart,
    ChoiceField,
    Column,
    Document,
    Link,
    Table,
    When,
    plain,
)
from hybridwatch.pages.html import csv_of_chart, csv_of_table, file_name

MOMENT = datetime(2026, 11, 21, 10, 15, tzinfo=timezone(timedelta(hours=1)))


def test_a_moment_is_written_in_utc_or_as_it_is_told() -> None:
    assert When(MOMENT).text == "2026-11-21 09:15 UTC"
    assert When(MOMENT, "3 h ago").text == "3 h ago"
    assert When(MOMENT, "3 h ago").utc == "2026-11-21 09:15 UTC"


def test_a_line_of_pieces_reads_as_one_text() -> None:
    line = (Verdict.FAILED, " since ", When(MOMENT, "today"), " in ", Link("x", address("runs")))
    assert plain(line) == "failed since today in x"
    assert plain("") == ""


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2 cells, found 1"):
        Table("t", (Column("a"), Column("b")), (("only one",),))


def test_csv_of_a_table_has_raw_numbers_times_in_iso_and_what_stands_under() -> None:
    columns = (Column("verdict"), Column("value"), Column("when"), Column("trend"))
    rows = (
        (
            Verdict.REGRESSION,
            Cell("41.3 ms", raw=0.0413),
            Cell(When(MOMENT, "3 h ago"), "run 1f"),
            Cell("", sparkline=(1.0, 2.5)),
        ),
    )
    assert csv_of_table(Table("t", columns, rows)) == (
        "verdict,value,when,trend\nregression,0.0413,2026-11-21T09:15:00+00:00 run 1f,1 2.5\n"
    )


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x()", "\t=1"])
def test_no_spreadsheet_computes_a_text_of_a_record(text: str) -> None:
    said = csv_of_table(Table("t", (Column("a"),), ((text,),)))
    assert said.split("\n", 1)[1].lstrip('"').startswith("'")


@pytest.mark.parametrize("text", ["-4.0 points", "+20.1 %", "-", "plain"])
def test_changes_stay_as_they_are_in_a_csv(text: str) -> None:
    assert csv_of_table(Table("t", (Column("a"),), ((text,),))) == f"a\n{text}\n"


def test_csv_of_a_chart_is_its_columns_and_refuses_uneven_ones() -> None:
    chart = Chart("c", None, "d", {"at": [MOMENT, MOMENT], "value": [1.5, 2]})
    at = "2026-11-21T09:15:00+00:00"
    assert csv_of_chart(chart) == f"at,value\n{at},1.5\n{at},2\n"
    with pytest.raises(ValueError, match="shorter"):
        csv_of_chart(Chart("c", None, "d", {"at": [MOMENT, MOMENT], "value": [1.5]}))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ttft p99", "hybridwatch-ttft-p99.csv"),
        ("../../etc/passwd", "hybridwatch-etc-passwd.csv"),
        ("<script>", "hybridwatch-script.csv"),
        ("é", "hybridwatch-view.csv"),
    ],
)
def test_a_file_has_a_harmless_name(title: str, name: str) -> None:
    assert file_name(title, ".csv") == name


def test_a_choice_tells_in_words_and_many_of_none_is_all() -> None:
    options = {"a": "first", "b": "second"}
    assert ChoiceField("L", "p", options, ("a", "b"), many=True).chosen_text == "first, second"
    assert ChoiceField("L", "p", options, (), many=True).chosen_text == "all"
    assert ChoiceField("L", "p", {}, ()).value == ""


def test_complaints_stand_first_and_loud() -> None:
    [warning] = Document("t", (), complaints=("no such run",)).warnings
    assert not warning.quiet
    assert warning.lines == ("no such run",)
    assert Document("t", ()).warnings == ()


def test_moments_are_aware_utc_in_csv_whatever_their_zone() -> None:
    utc = When(MOMENT.astimezone(UTC))
    cells = (Table("t", (Column("w"),), ((when,),)) for when in (When(MOMENT), utc))
    assert len({csv_of_table(table) for table in cells}) == 1
