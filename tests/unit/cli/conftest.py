"""What tests of several verbs ask for."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.command_line import run_verb


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Result]:
    """Run a verb on a store of its own."""

    return lambda *words, **expected: run_verb(*words, "--results", tmp_path, **expected)


@pytest.fixture
def own_policy(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Write a policy; gives the words that name it. Without rules it blocks everything."""

    def write(text: str = '[[rule]]\nmetric = "*"\naction = "block"\n') -> tuple[str, str]:
        file = tmp_path / "own.toml"
        file.write_text(text)
        return "--policy", str(file)

    return write
