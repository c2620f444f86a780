"""The card of releases as a screen tells it."""

from hybridwatch.pages.document import FieldKind
from hybridwatch.records.store.files import append_entry
from hybridwatch.reports.releases.cell import cells_file
from tests.dashboard.parity import words_of
from tests.unit.pages.suite_stores import notices, rows, view
from tests.unit.reports.releases.cells import PADDED, TOKENS, a_cell


def test_without_a_cell_the_screen_says_how_to_get_one(tmp_path):
    assert "hybridwatch releases run" in words_of(view(tmp_path, "releases"))


def test_a_red_cell_without_a_reason_is_loud_and_differs_from_its_neighbour(tmp_path):
    for cell in (a_cell("0.32.0", "v2", TOKENS), a_cell("0.31.0", "v2")):
        append_entry(cells_file(tmp_path), cell)
    shown = view(tmp_path, "releases")
    loud = notices(shown)[0]
    assert (loud.kind, loud.lines) == (FieldKind.LOUD, (f"{PADDED} 0.32.0 v2: {TOKENS}",))
    told = "broken [not explained]"
    assert [PADDED, told, "owed", "clean", "owed"] in rows(shown, "Releases")
    assert [row[1:] for row in rows(shown, "Differences")] == [[PADDED, "clean", told]]


def test_cells_that_cannot_be_read_are_named(tmp_path):
    append_entry(cells_file(tmp_path), a_cell())
    cells_file(tmp_path).write_text("no cell\n" * 2, encoding="utf-8")
    assert "cells.jsonl:1" in str(notices(view(tmp_path, "releases"))[0].lines)
