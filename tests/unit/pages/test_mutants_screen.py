"""The kill table as a screen tells it."""

from pathlib import Path

import pytest

from hybridwatch_lab.mutants.table import HEALTHY, MutantState, append_cell, table_file
from tests.dashboard.parity import words_of
from tests.unit.mutants.cells import a_cell
from tests.unit.pages.suite_stores import notices, rows, view


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return table_file(tmp_path, "cpu-0.27.1")


def test_without_a_table_the_screen_says_how_to_get_one(tmp_path):
    assert "hybridwatch mutants smoke" in words_of(view(tmp_path, "mutants"))


def test_each_mutant_has_a_row_with_what_killed_it(tmp_path, table):
    append_cell(table, a_cell(HEALTHY, MutantState.SURVIVED))
    append_cell(table, a_cell("unzeroed-state", seconds=3.0))
    append_cell(table, a_cell("decode-dt-bias", MutantState.SURVIVED))
    found = rows(view(tmp_path, "mutants"), "Kill table")
    assert [row[0] for row in found] == ["healthy engine", "unzeroed-state", "decode-dt-bias"]
    assert [row[-1] for row in found] == ["nothing found", "wrong_tokens, 3 s", "survived"]


def test_a_false_alarm_is_loud(tmp_path, table):
    append_cell(table, a_cell(HEALTHY, detail="contract.wrong_tokens 0 -> 2"))
    loud = notices(view(tmp_path, "mutants"))[0]
    assert not loud.quiet
    assert loud.title == "1 false alarm"


def test_a_table_that_cannot_be_read_is_named(tmp_path, table):
    append_cell(table, a_cell("unzeroed-state"))
    table.write_text("no cell\n" * 2, encoding="utf-8")
    loud = notices(view(tmp_path, "mutants"))[0]
    assert not loud.quiet
    assert "cpu-0.27.1.jsonl:1" in str(loud.lines)


def test_a_file_of_own_mutants_that_cannot_be_read_is_named(own_home, tmp_path):
    (own_home / "mutants" / "mine.toml").write_text("[mutant.one]\n")
    loud = notices(view(tmp_path, "mutants"))[0]
    assert not loud.quiet
    assert "mine.toml: mutant.one.mechanism: missing" in str(loud.lines)
