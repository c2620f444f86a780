"""What a stranger's text may do to a terminal, a page or a spreadsheet: nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.system.plain_text import csv_cell, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x07\x00\x7f", r"\x1b[2J\x07\x00\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("gnp.\u202ereversed", r"gnp.\u202ereversed"),
        ("\u2066\u2069\u200e\u200f\u061c", r"\u2066\u2069\u200e\u200f\u061c"),
        ("\u200b\ufeff\u2028", r"\u200b\ufeff\u2028"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),
        ("a\rb", r"a\x0db"),
    ],
)
def test_what_steers_a_display_is_written_as_an_escape(text, shown) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text", ["", "plain", "a\tb\nc", "\u00b5s \u00b1\u00a01", "\u0645\u06cc\u200c\u062e", "C:\\x1b"]
)
def test_honest_text_stays_as_it_is(text) -> None:
    assert visible(text) == text


def test_line_ends_of_windows_are_line_ends() -> None:
    assert visible("a\r\nb") == "a\nb"


FORMULAS = [
    "=1+1", "+1+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", " =1", '"=1',
    "'=1", "- cmd", "--1", "+", "-5(A1)", "-5 A1", "\uff1d1", "=1;2", "-1e5e",
]  # fmt: skip


@pytest.mark.parametrize("text", [*FORMULAS, "\tx"])
def test_a_formula_is_marked_as_text(text) -> None:
    assert str(csv_cell(text)).startswith("'")


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("sign", [";", "\t", "\n"])
def test_a_formula_is_marked_also_where_other_signs_part_the_cells(text, sign) -> None:
    """A spreadsheet of a country with decimal commas parts cells at semicolons."""
    assert re.search(rf"{sign}\t?'", str(csv_cell(f"a{sign}{text}")))


@pytest.mark.parametrize(
    "cell",
    ["-5", "+5", "-0.5e-3", "+20.1 %", "-4.0 points", "-", "a=b", "a-b", "1+1", "x; y", "-1;2"],
)
def test_numbers_and_honest_words_stay_as_they_are(cell) -> None:
    assert csv_cell(cell) == cell


@pytest.mark.parametrize("value", [-5.0, None, 3, True])
def test_what_is_no_text_stays_as_it_is(value) -> None:
    assert csv_cell(value) is value


@given(st.text(alphabet=st.sampled_from("=+-@\t\n\r;'\" 1.e%A(\x1b\u202e"), max_size=12))
def test_no_part_of_a_cell_begins_with_a_sign_unless_it_is_a_number(text) -> None:
    for part in re.split(r"[;\t\n]", str(csv_cell(text))):
        computed = re.match(r"[\s\"]*[=+\-@]", part)
        assert not computed or re.fullmatch(r"[+-]?[\d.]*(e[+-]?\d+)?( ?%| e)? *", part)
