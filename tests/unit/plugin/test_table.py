"""The tables of fixes and of planted faults in the engine's README."""

from pathlib import Path

import pytest
from hybridwatch_engine.table import replaced, tables

README = Path(__file__).parents[3] / "engine" / "README.md"


def test_readme_shows_the_headers_as_they_are():
    text = README.read_text(encoding="utf-8")
    assert replaced(text) == text
    assert "| `padded-rows-prefilling` |" in text
    assert "| `+slow-step` |" in text


@pytest.mark.parametrize("words", ["vllm#41873", "sleeps a quarter"])
def test_a_changed_header_is_noticed(words):
    edited = README.read_text(encoding="utf-8").replace(words, "something else")
    mended = replaced(edited)
    assert mended != edited
    assert all(table in mended for table in tables().values())


@pytest.mark.parametrize("name", ["fixes", "faults"])
def test_a_readme_without_a_place_for_it_is_refused(name):
    text = README.read_text(encoding="utf-8").replace(f"<!-- end of {name} -->", "")
    with pytest.raises(ValueError, match=f"lacks the lines .*end of {name}"):
        replaced(text)
