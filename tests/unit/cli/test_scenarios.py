"""``hybridwatch scenarios`` as a person or a script sees it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.scenarios import scenarios_command as command
from tests.checkout import EXAMPLE

SHIPPED = Path(__file__).parents[3] / "scenarios"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios" / "smoke"
    folder.mkdir(parents=True)
    (folder / "stale-rows.toml").write_text(EXAMPLE)
    return folder.parent


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--root", str(root)], env={"COLUMNS": "160"})


def test_the_list_names_id_and_fix_and_with_all_the_first_sentence(root):
    result = call(root)
    assert result.exit_code == 0
    assert "smoke/stale-rows" in result.stdout
    assert "padded-rows-prefilling" in result.stdout
    assert "Rows go stale." not in result.stdout
    whole = call(root, "--all")
    assert "Rows go stale." in whole.stdout
    assert "More text." not in whole.stdout


def test_the_list_of_what_is_shipped_is_a_line_each_at_80_columns():
    result = CliRunner().invoke(command, ["--root", str(SHIPPED)], env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    assert len(lines) == len(list(SHIPPED.rglob("*.toml"))) + 2
    assert "\N{HORIZONTAL ELLIPSIS}" not in result.stdout


def test_check_tells_every_bad_file_and_ends_with_2(root):
    (root / "smoke" / "bad.toml").write_text(EXAMPLE.replace("seed = 7", "seed = -1"))
    (root / "smoke" / "worse.toml").write_text("why")
    result = call(root, "--check")
    assert result.exit_code == 2
    assert "valid." in result.stdout
    assert result.stderr.splitlines() == [
        (
            "ScenarioError: scenarios/smoke/bad.toml: workload.generation.seed: "
            "expected an integer >= 0, found -1"
        ),
        (
            "ScenarioError: scenarios/smoke/worse.toml: not TOML: "
            "Expected '=' after a key in a key/value pair (at end of document)"
        ),
    ]


def test_check_is_silent_about_good_files_but_for_their_number(root):
    result = call(root, "--check")
    assert result.exit_code == 0
    assert result.stdout.endswith("valid.\n")
    assert result.stderr == ""


def test_json_has_scenarios_and_problems(root):
    (root / "smoke" / "bad.toml").write_text("")
    result = call(root, "--json")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    by_id = {scenario["id"]: scenario for scenario in answer["scenarios"]}
    assert by_id["smoke/stale-rows"]["fix"] == "padded-rows-prefilling"
    assert len(by_id["smoke/stale-rows"]["digest"]) == 64
    assert all(line.startswith("scenarios/smoke/bad.toml: ") for line in answer["problems"])


def test_without_root_the_checkout_is_listed(tmp_path, monkeypatch):
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    monkeypatch.chdir(SHIPPED / "smoke")
    result = CliRunner().invoke(command, ["--check"])
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("line", "wrong", "key"),
    [
        ('model = "tiny-hybrid"', 'model = "tiny-hybird"', "model"),
        (
            "[engine]",
            '[engine.speculation]\nmethod = "eagle"\ndrafts = 1\nmodel = "no-head"\n[engine]',
            "engine.speculation.model",
        ),
    ],
)
def test_a_model_that_is_not_there_is_told_before_anything_is_measured(root, line, wrong, key):
    assert line in EXAMPLE
    text = EXAMPLE.replace(line, wrong, 1)
    (root / "smoke" / "of-nothing.toml").write_text(text)
    result = call(root, "--check")
    assert result.exit_code == 2
    assert result.stdout == "1 scenario is valid.\n"
    (told,) = result.stderr.splitlines()
    assert told.startswith(f"ScenarioError: scenarios/smoke/of-nothing: {key}: expected a folder '")
