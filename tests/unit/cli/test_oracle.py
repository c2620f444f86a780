"""``hybridwatch oracle``: what it refuses before anything is computed."""

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["make", "tiny-moe", "smoke/dummy-run"], "expected tiny-memory-moe, found tiny-moe"),
        (["make", "tiny-hybrid", "smoke"], "smoke: expected one scenario, found"),
        (["make", "/", "smoke/padded-graph-rows"], "a folder with a config.json"),
        (["check", "curated/nixl-disagg"], "run: hybridwatch oracle make tiny-hybrid curated/nixl"),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_expected(words, message) -> None:
    answer = CliRunner().invoke(cli, ["oracle", *words])
    assert answer.exit_code == 2
    assert message in answer.output
