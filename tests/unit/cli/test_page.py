from pathlib import Path

from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.records.store import write_run
from tests.store_builders import REGRESSED, run


def test_a_view_is_written_and_named(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    out = tmp_path / "run.html"
    words = ["page", "run", "--results", str(tmp_path), "--out", str(out)]
    outcome = CliRunner().invoke(cli, [*words, "--query", f"run={run(REGRESSED).id}"])
    assert outcome.exit_code == 0, outcome.output
    written = out.read_text(encoding="utf-8")
    assert "contract.padded_rows_prefilling" in written
    assert f"hybridwatch page run --query run={run(REGRESSED).id}" in written


def test_a_query_that_cannot_be_answered_is_bad_news(tmp_path: Path) -> None:
    write_run(tmp_path, run(REGRESSED))
    out = tmp_path / "run.html"
    words = ["page", "run", "--results", str(tmp_path), "--out", str(out), "--query", "run=0"]
    outcome = CliRunner().invoke(cli, words)
    assert outcome.exit_code == 1
    assert "The link asks for run '0', which is not in this store." in outcome.output
    assert "which is not in this store" in out.read_text(encoding="utf-8")


def test_what_cannot_be_written_or_is_no_screen_is_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("a file")
    nowhere = ["--results", str(tmp_path), "--out", str(tmp_path / "no" / "x.html")]
    outcome = CliRunner().invoke(cli, ["page", "runs", *nowhere])
    assert outcome.exit_code == 2
    assert "cannot be written" in outcome.output
    assert CliRunner().invoke(cli, ["page", "nonsense", *nowhere]).exit_code == 2


def test_a_store_without_records_is_not_the_querys_fault(tmp_path: Path) -> None:
    words = ["page", "run", "--query", "run=1f0a9c3e", "--out", str(tmp_path / "x.html")]
    nowhere = CliRunner().invoke(cli, [*words, "--results", str(tmp_path / "nowhere")])
    assert nowhere.exit_code == 2
    assert "nowhere: no such folder" in nowhere.output
    assert not (tmp_path / "x.html").exists()
    empty = CliRunner().invoke(cli, [*words, "--results", str(tmp_path)])
    assert empty.exit_code == 1
    assert "does not know" not in empty.output
    assert "no run to show yet" in empty.output
