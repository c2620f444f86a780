"""A verb of the program, called as somebody types it."""

from typing import Any

from click import Command
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli


def run_verb(
    *words: object, of: Command = cli, status: int | None = None, **options: Any
) -> Result:
    """Call it; it ends with the status, if one is given, and never in a traceback."""
    answer = CliRunner().invoke(of, list(map(str, words)), **options)
    assert of is not cli or isinstance(answer.exception, SystemExit | None), answer.exc_info
    assert status in {None, answer.exit_code}, answer.output
    return answer
