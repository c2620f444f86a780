"""The kill table on disk: the newest cell counts, and a cut line costs no other."""

import pytest

from hybridwatch.errors import RecordError
from hybridwatch_lab.mutants.table import MutantState, append_cell, read_cells, table_file
from tests.unit.mutants.cells import a_cell


@pytest.fixture
def path(tmp_path):
    return table_file(tmp_path, "cpu-0.27.1")


def test_no_file_is_an_empty_table(path):
    assert read_cells(path) == []


def test_the_newest_cell_of_a_mutant_and_scenario_counts(path):
    cells = [a_cell("a", MutantState.SURVIVED), a_cell("b"), a_cell("a", MutantState.KILLED)]
    for cell in cells:
        append_cell(path, cell)
    assert read_cells(path) == cells[1:]


def test_a_cut_line_is_left_out_and_takes_no_later_one_with_it(path):
    append_cell(path, a_cell("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"mutant": "b", "sce')
    assert read_cells(path) == [a_cell("a")]
    append_cell(path, a_cell("c"))
    assert read_cells(path) == [a_cell("a"), a_cell("c")]


def test_a_line_that_is_no_cell_is_refused_by_file_line_and_key(path):
    append_cell(path, a_cell("a"))
    line = path.read_text(encoding="utf-8").replace('"killed"', '"slain"')
    path.write_text(line + line, encoding="utf-8")
    with pytest.raises(RecordError, match=r"cpu-0.27.1.jsonl:1: state: "):
        read_cells(path)
