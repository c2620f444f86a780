"""What README and the page of commands say to type works on a fresh clone without an engine."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from hybridwatch.cli.main import verbs
from hybridwatch.cli.subjects import chosen
from hybridwatch.engines.builds import DEFAULT_BUILD
from hybridwatch.records.store import read_examples
from hybridwatch.records.store.layout import read_run_id
from hybridwatch.records.store.reader import EXAMPLES
from tests.command_line import run_verb

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
PROGRAM = "hybridwatch "
TABLES = [part.partition("\n\n")[0] for part in PAGE.split("| you want | run |")[1:]]
SPANS = [span for table in TABLES for span in re.findall(r"`([^`]+)`", table)]
LINES = [line.removeprefix("next:").strip() for line in README.splitlines()]
COMMANDS = [
    command.replace("\\|", "|").replace(".venv/bin/", "")
    for command in (*LINES, *SPANS)
    if command.removeprefix(".venv/bin/").startswith(PROGRAM)
]
MOST_LINES, MOST_CHARACTERS = 80, 100
FOR_ENGINES = {
    "check",
    "run",
    "try",
    "bisect",
    "controls",
    "mutants",
    "fuzz",
    "engine",
    "oracle",
    "dashboard",
    "serve",
    "answer",  # a workflow's, with GitHub's event
}
READING = {"records", "compare", "explain", "gate"}
SHORT = [f"{PROGRAM}{span}" for span in SPANS if span.partition(" ")[0] in READING]
"""Second commands of a row, which leave the program's name out."""
CAPITALS = re.compile(r"[A-Z]{3,}(?:$|[./])")
"""A name in capitals stands for something of the reader's."""


def is_for_a_fresh_clone(command: str) -> bool:
    words = shlex.split(command)
    return words[1] not in FOR_ENGINES and not any(map(CAPITALS.match, words))


HERE = [command for command in (*COMMANDS, *SHORT) if is_for_a_fresh_clone(command)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed records and policy, and nothing that was ever stored beside them."""
    folder: Path = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "results" / "records", folder / "results" / "records")
    shutil.copy(ROOT / "results" / EXAMPLES, folder / "results")
    (folder / "ci").symlink_to(ROOT / "ci")
    return folder


def test_there_are_commands_of_every_kind() -> None:
    assert len(HERE) >= 12
    assert {"compare", "gate"} <= {shlex.split(command)[1] for command in HERE}
    assert {shlex.split(command)[1] for command in COMMANDS} <= set(verbs())


# In the order of the pages, and in one clone: `explain` speaks of what `compare --save` stored.
def test_every_command_answers(clone, monkeypatch, subtests) -> None:
    monkeypatch.chdir(clone)
    for command in HERE:
        with subtests.test(command):
            said = None
            for part in command.split(" | "):
                answer = run_verb(*shlex.split(part)[1:], input=said)
                assert answer.exit_code in {0, 1}, answer.output
                assert isinstance(answer.exception, SystemExit | None), answer.exception
                said = answer.stdout


def test_what_is_shipped_passes_the_gate_whatever_its_age(clone, monkeypatch) -> None:
    monkeypatch.chdir(clone)
    assert "bugs caught" in run_verb("gate", status=0).output


def test_every_run_of_the_repository_is_an_example() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "results/records"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    records = {Path(name) for name in listed.stdout.splitlines() if name.endswith(".json")}
    assert {read_run_id(path) for path in records} == read_examples(ROOT / "results")


def test_readme_is_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > MOST_CHARACTERS] == []


def told_of_releases(table: str) -> dict[str, list[str]]:
    """The rows of scenarios in a table, without their markup."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if "|" in line]
    named = ((name, row[1:]) for row in rows for name in row[0].split(", "))
    return {
        name.strip("`"): cells for name, cells in named if name.startswith(("`smoke", "`curated"))
    }


def in_short(v2: str, v1: str) -> str:
    """A release's two cells of the card as README has them in one."""
    bad = [name for name, cell in (("V1", v1), ("V2", v2)) if cell.startswith("**")]
    if len(bad) == 1:
        return f"{bad[0]} broken"
    return "broken" if bad else "clean" if "clean" in (v2, v1) else "-"


def disagreements(readme: str) -> list[str]:
    card = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8").partition("\n## ")[0]
    (head,) = [line for line in card.splitlines() if line.startswith("| scenario ")]
    columns = head.strip("| ").split(" | ")[1:]
    cells = {
        name: dict(zip(columns, row, strict=True)) for name, row in told_of_releases(card).items()
    }
    (named,) = [line for line in readme.splitlines() if line.startswith("| scenario ")]
    releases = named.strip("| ").split(" | ")[3:]
    return [
        f"{name} {release}: {told}, not {shown}"
        for name, row in told_of_releases(readme).items()
        for release, told in zip(releases, row[2:], strict=True)
        if told != (shown := in_short(cells[name][f"{release} V2"], cells[name][f"{release} V1"]))
    ]


def test_readme_says_of_releases_what_the_card_says() -> None:
    assert disagreements(README) == []
    assert len(told_of_releases(README)) >= 5
    assert len(disagreements(README.replace("V1 broken", "clean", 1))) == 1


def test_make_run_begins_with_the_scenario_that_is_reported_first() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = shlex.split(next(line for line in recipe.splitlines() if "hybridwatch run" in line))
    asked = [word for word in words[words.index("run") + 1 :] if not word.startswith("-")]
    found = [scenario.id for scenario in chosen(asked, (DEFAULT_BUILD,))]
    assert found[0] == "smoke/padded-graph-rows"
    assert sorted(found) == sorted(scenario.id for scenario in chosen(("smoke",), (DEFAULT_BUILD,)))


def test_make_run_measures_the_build_that_it_installs() -> None:
    command = ["make", "-n", "run", "BUILD=cpu-0.32.0"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    called = [shlex.split(line)[1:] for line in told.splitlines() if "bin/hybridwatch " in line]
    assert ["engine", "install", "cpu-0.32.0"] in called
    (run,) = (words for words in called if words[0] == "run")
    assert "--build=cpu-0.32.0" in run
    assert chosen([word for word in run[1:] if not word.startswith("-")], ("cpu-0.32.0",))
