import json

from click.testing import CliRunner

from hybridwatch.cli.main import cli
from tests.unit.database.stores import add, opened


def ask(*words: str):
    return CliRunner().invoke(cli, ["index", *words])


def test_says_what_the_index_holds_and_leaves_it_for_the_dashboard(tmp_path):
    add(tmp_path, 1)
    answer = ask("--results", str(tmp_path))
    assert answer.exit_code == 0
    assert answer.stdout == "1 record, 34 values, 4 verdicts\n"
    assert opened(tmp_path).read == 0


def test_broken_records_are_named_but_do_not_stop_it(tmp_path):
    add(tmp_path, 1)
    broken = add(tmp_path, 2)
    broken.write_text("\x1b[31mno record")
    answer = ask("--results", str(tmp_path))
    assert answer.exit_code == 0
    assert answer.stdout.startswith("2 records, 34 values")
    assert broken.name in answer.stderr
    assert "\x1b" not in answer.stderr


def test_json_is_plain_and_complete(tmp_path):
    add(tmp_path, 1)
    add(tmp_path, 2).write_text("{")
    told = json.loads(ask("--results", str(tmp_path), "--json").stdout)
    assert told.pop("unreadable")[0]["record"].endswith("00000002.json")
    assert told == {
        "schema_version": 1,
        "kept": True,
        "records": 2,
        "runs": 1,
        "values": 34,
        "verdicts": 4,
        "broken": 1,
    }


def test_rebuild_reads_everything_again(tmp_path):
    add(tmp_path, 1)
    ask("--results", str(tmp_path))
    opened(tmp_path)
    answer = ask("--results", str(tmp_path), "--rebuild")
    assert answer.exit_code == 0
    assert answer.stdout == "1 record, 34 values, 4 verdicts\n"


def test_index_that_cannot_be_kept_is_said(tmp_path):
    add(tmp_path, 1)
    (tmp_path / "hybridwatch.sqlite").mkdir()
    answer = ask("--results", str(tmp_path))
    assert answer.exit_code == 0
    assert "could not be written" in answer.stderr


def test_folder_that_is_none_is_a_wrong_call(tmp_path):
    answer = ask("--results", str(tmp_path / "none"))
    assert answer.exit_code == 2
    assert "expected a folder of records" in answer.output
