"""``hybridwatch sql`` and ``hybridwatch index``."""

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from hybridwatch.database import connection
from tests.command_line import run_verb
from tests.unit.database.stores import add, opened

PAGE = Path(__file__).parents[3] / "docs" / "database.md"


def ask_sql(results: Path, *words: str, status: int | None = None) -> Result:
    return run_verb("sql", *words, "--results", results, status=status)


@pytest.fixture
def results(place, tmp_path):
    add(tmp_path, 1)
    add(tmp_path, 2, slower=2.0)
    return tmp_path


def test_new_records_are_part_of_the_answer(results):
    answer = ask_sql(results, "SELECT run FROM run ORDER BY started_at", "--csv")
    assert answer.stdout == "run\n00000001\n00000002\n"
    assert opened(results).read == 0


def test_answers_are_the_same_as_a_table_csv_and_json(results):
    words = "SELECT verdict, count(*) AS n FROM verdict GROUP BY verdict ORDER BY n DESC, verdict"
    rows = json.loads(ask_sql(results, words, "--json").stdout)
    assert sum(row["n"] for row in rows) == 8
    lines = list(csv.DictReader(ask_sql(results, words, "--csv").stdout.splitlines()))
    assert lines == [{name: str(value) for name, value in row.items()} for row in rows]
    table = ask_sql(results, words).stdout.split()
    assert table == ["verdict", "n", *(str(value) for row in rows for value in row.values())]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM verdict",
        "UPDATE run SET run = 'x'",
        "DROP TABLE value",
        "SELECT 1; DELETE FROM verdict",
        "COMMIT; DELETE FROM verdict",
        "CREATE TABLE mine (x INTEGER)",
        "SELECT no_such_column FROM run",
        "this is no SQL",
        "",
    ],
)
def test_what_is_no_question_is_refused_in_one_line_and_changes_nothing(results, statement):
    before = opened(results).index.counts
    assert len(str(ask_sql(results, statement, status=2).exception).splitlines()) <= 1
    assert opened(results).index.counts == before


def worked_questions() -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(r'^hybridwatch sql "(SELECT [^"]+)"$', page, re.MULTILINE)


def test_every_worked_question_of_the_page_has_an_answer(results):
    found = worked_questions()
    assert len(found) == 4
    for statement in found:
        answer = ask_sql(results, statement.replace("\\\n", ""), "--json", status=0)
        assert json.loads(answer.stdout), statement


def ask_index(*words: str, status: int | None = None):
    return run_verb("index", *words, status=status)


def test_says_what_the_index_holds_and_leaves_it_for_the_dashboard(tmp_path):
    add(tmp_path, 1)
    answer = ask_index("--results", str(tmp_path), status=0)
    assert answer.stdout == "1 record, 34 values, 4 verdicts\n"
    assert opened(tmp_path).read == 0


def test_broken_records_are_named_but_do_not_stop_it(tmp_path):
    add(tmp_path, 1)
    broken = add(tmp_path, 2)
    broken.write_text("\x1b[31mno record")
    answer = ask_index("--results", str(tmp_path), status=0)
    assert answer.stdout.startswith("2 records, 34 values")
    assert broken.name in answer.stderr
    assert "\x1b" not in answer.stderr


def test_json_is_plain_and_complete(tmp_path):
    add(tmp_path, 1)
    add(tmp_path, 2).write_text("{")
    told = json.loads(ask_index("--results", str(tmp_path), "--json").stdout)
    assert told.pop("unreadable")[0]["record"].endswith("00000002.json")
    assert told == {
        "schema_version": 1,
        "kept": True,
        "records": 2,
        "runs": 1,
        "values": 34,
        "verdicts": 4,
        "broken": 1,
    }


def test_rebuild_reads_everything_again(tmp_path):
    add(tmp_path, 1)
    ask_index("--results", str(tmp_path))
    opened(tmp_path)
    answer = ask_index("--results", str(tmp_path), "--rebuild", status=0)
    assert answer.stdout == "1 record, 34 values, 4 verdicts\n"


def test_index_that_cannot_be_kept_is_said(tmp_path):
    add(tmp_path, 1)
    (tmp_path / "hybridwatch.sqlite").mkdir()
    assert "could not be written" in ask_index("--results", str(tmp_path), status=0).stderr


def test_folder_that_is_none_is_a_wrong_call(tmp_path):
    answer = ask_index("--results", str(tmp_path / "none"), status=2)
    assert "none: no such folder" in answer.output


def test_no_other_file_is_opened(tmp_path):
    add(tmp_path, 1)
    other = tmp_path / "other.sqlite"
    answer = ask_sql(tmp_path, f"ATTACH '{other}' AS other", status=2)
    assert "expected tables of this database alone, found another file" in answer.output
    assert not other.exists()


def test_a_statement_without_an_end_is_given_up(tmp_path, monkeypatch):
    add(tmp_path, 1)
    monkeypatch.setattr(connection, "_LONGEST_STATEMENT_S", 0.2)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    answer = ask_sql(tmp_path, endless, status=2)
    assert "the statement: expected an answer in 120 s, found none" in answer.output
