"""What tests of several verbs ask for."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Result]:
    """Run a verb on a store of its own."""

    def run(*words: str) -> Result:
        answer = CliRunner().invoke(cli, [*words, "--results", str(tmp_path)])
        assert answer.exception is None or isinstance(answer.exception, SystemExit), answer
        return answer

    return run


@pytest.fixture
def own_policy(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Write a policy; gives the words that name it. Without rules it blocks everything."""

    def write(text: str = '[[rule]]\nmetric = "*"\naction = "block"\n') -> tuple[str, str]:
        file = tmp_path / "own.toml"
        file.write_text(text)
        return "--policy", str(file)

    return write
