"""The table of fixes in the engine's README."""

from pathlib import Path

import pytest
from hybridwatch_engine.table import render, replaced

README = Path(__file__).parents[3] / "engine" / "README.md"


def test_readme_shows_the_headers_as_they_are():
    text = README.read_text(encoding="utf-8")
    assert replaced(text) == text
    assert "### padded-rows-prefilling" in text


def test_a_changed_header_is_noticed():
    text = README.read_text(encoding="utf-8")
    assert replaced(text.replace("vllm#41873", "vllm#1")) != text.replace("vllm#41873", "vllm#1")
    assert render() in replaced(text)


def test_a_readme_without_a_place_for_it_is_refused():
    with pytest.raises(ValueError, match="lacks the lines"):
        replaced("# nothing here\n")
