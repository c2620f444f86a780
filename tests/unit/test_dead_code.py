"""The check for unused code finds some, and keeps its own list short."""

from tests.dead_code import complaints, unused


def test_a_function_that_nobody_calls_is_found(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text("def used():\n    return 1\n\ndef forgotten():\n    return used()\n")
    [(name, line)] = unused([file])
    assert name == "forgotten"
    assert line.endswith("planted.py:4: unused function 'forgotten'")


def test_what_is_expected_is_no_complaint():
    assert complaints([("load_recall", "a line")], ["load_*"]) == []


def test_an_entry_that_nothing_needs_is_a_complaint():
    assert complaints([("a", "a line")], ["b"]) == [
        "a line",
        "tests/dead_code.py: nothing needs the entry 'b'",
    ]
