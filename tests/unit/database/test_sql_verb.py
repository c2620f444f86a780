import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli
from tests.unit.database.stores import add, opened

pytestmark = pytest.mark.usefixtures("place")

PAGE = Path(__file__).parents[3] / "docs" / "database.md"


def ask(results: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["sql", *words, "--results", str(results)])


@pytest.fixture
def results(tmp_path):
    add(tmp_path, 1)
    add(tmp_path, 2, slower=2.0)
    return tmp_path


def test_new_records_are_part_of_the_answer(results):
    answer = ask(results, "SELECT run FROM run ORDER BY started_at", "--csv")
    assert answer.stdout == "run\n00000001\n00000002\n"
    assert opened(results).read == 0


def test_answers_are_the_same_as_a_table_csv_and_json(results):
    words = "SELECT verdict, count(*) AS n FROM verdict GROUP BY verdict ORDER BY n DESC, verdict"
    rows = json.loads(ask(results, words, "--json").stdout)
    assert sum(row["n"] for row in rows) == 8
    lines = list(csv.DictReader(ask(results, words, "--csv").stdout.splitlines()))
    assert lines == [{name: str(value) for name, value in row.items()} for row in rows]
    table = ask(results, words).stdout.split()
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
    answer = ask(results, statement)
    assert answer.exit_code == 2
    assert len(str(answer.exception).splitlines()) <= 1
    assert opened(results).index.counts == before


def worked_questions() -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(r'^hybridwatch sql "(SELECT [^"]+)"$', page, re.MULTILINE)


def test_every_worked_question_of_the_page_has_an_answer(results):
    found = worked_questions()
    assert len(found) == 5
    for statement in found:
        answer = ask(results, statement.replace("\\\n", ""), "--json")
        assert answer.exit_code == 0, f"{statement}: {answer.output}"
        assert json.loads(answer.stdout), statement
