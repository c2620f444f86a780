"""The way in: words that are no verb, missing extras, help, completion, suggested commands."""

import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from hybridwatch.cli.main import EXTRAS, VERBS, cli, verbs
from hybridwatch.cli.options import program
from hybridwatch.records.store import write_run
from tests.builders import a_run
from tests.checkout import make_checkout
from tests.command_line import run_verb
from tests.shipped import ROOT


@pytest.mark.parametrize(("word", "meant"), [("comapre", "compare"), ("bisct", "bisect")])
def test_a_word_that_is_nearly_a_verb_is_answered_with_the_verb(word, meant) -> None:
    assert f"No such command '{word}'. Did you mean '{meant}'?" in run_verb(word, status=2).output


def test_a_word_that_is_like_no_verb_is_only_refused() -> None:
    assert "Did you mean" not in run_verb("xyzzy", status=2).output


@pytest.mark.parametrize(
    ("verb", "module", "extra"),
    [
        ("serve", "uvicorn", "api"),
        ("index", "pandas", "dashboard"),
        ("run", "psutil", "measure"),
        ("check", "httpx", "client"),
    ],
)
def test_a_verb_without_its_extra_names_the_command_that_installs_it(verb, module, extra) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = [{verb!r}, '--help']\n"
        "from hybridwatch.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"hybridwatch: {verb}: needs the Python module '{module}")
    words = shlex.split(done.stderr.rpartition("; run: ")[2])
    assert words == [sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[{extra}]"]


def test_every_extra_that_is_named_is_one_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*EXTRAS.values(), "dashboard"} <= project["optional-dependencies"].keys()
    assert EXTRAS.keys() <= VERBS.keys()


def commands() -> Iterator[tuple[str, ...]]:
    yield ()
    for verb in verbs():
        yield (verb,)
        command = cli.get_command(click.Context(cli), verb)
        if isinstance(command, click.Group):
            yield from ((verb, name) for name in command.commands)


@cache
def examples_of(words: tuple[str, ...]) -> list[str]:
    answer = run_verb(*words, "--help", status=0)
    lines = answer.output.partition("Examples:\n")[2].splitlines()
    return [line.strip() for line in lines if line.strip().startswith("hybridwatch ")]


def test_help_has_an_example_of_this_very_verb() -> None:
    """The first one is of the verb itself."""
    first = {words: " ".join(examples_of(words)[:1]) for words in commands()}
    assert len(first) > 40
    assert [
        f"hybridwatch {' '.join(words)}: {line or 'no example'}"
        for words, line in first.items()
        if not line or line.split()[1 : len(words) + 1] != list(words)
    ] == []


def test_every_example_is_a_call_that_its_verb_takes(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    refused = []
    for line in {line: None for words in commands() for line in examples_of(words)}:
        try:
            for part in line.split(" | "):
                context = click.Context(cli, info_name="hybridwatch")
                _parse(cli, context, shlex.split(part)[1:])
        except (click.ClickException, AssertionError) as error:
            refused.append(f"{line}: {error}")
    assert refused == []


def _parse(group: click.Group, parent: click.Context, words: list[str]) -> None:
    name, command, rest = group.resolve_command(parent, words)
    assert command is not None, name
    if isinstance(command, click.Group):
        _parse(command, click.Context(command, parent=parent, info_name=name), rest)
    else:
        command.make_context(name, rest, parent=parent)


HEALTHY = {"contract.padded_rows_prefilling": (0.0,)}


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A checkout with a scenario, a build and a run, and what is offered there."""
    make_checkout(tmp_path, "smoke/padded", "smoke/again")
    write_run(tmp_path / "results", a_run(HEALTHY, HEALTHY))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYBRIDWATCH_HOME", raising=False)
    shell = ShellComplete(cli, {}, "hybridwatch", "_HYBRIDWATCH_COMPLETE")

    def ask(*words: str) -> list[str]:
        *before, last = words
        return [item.value for item in shell.get_completions(before, last)]

    return ask


@pytest.mark.parametrize("verb", ["run", "controls", "nightly"])
def test_scenarios_and_their_groups(offered, verb) -> None:
    assert offered(verb, "s") == ["smoke", "smoke/again", "smoke/padded"]
    assert offered(verb, "smoke/p") == ["smoke/padded"]


def test_builds_and_what_can_be_switched_on_them(offered) -> None:
    assert offered("run", "--build", "t") == ["tiny-1.0"]
    switched = offered("run", "--build", "tiny-1.0~padded")
    assert switched == ["tiny-1.0~padded-rows-prefilling"]
    assert "tiny-1.0~conv-anchor+slow-step" in offered("run", "--build", "tiny-1.0~conv-anchor+s")
    assert offered("run", "--build", "tiny-1.0~slow") == [], "no release has that fault"


@pytest.mark.parametrize("verb", ["compare", "gate", "comment", "export"])
def test_runs_by_their_ids(offered, verb) -> None:
    assert offered(verb, "") == ["latest", "1f0a9c3e"]
    assert offered(verb, "1f") == ["1f0a9c3e"]
    assert offered(verb, "--results", "elsewhere", "1f") == []


def test_verbs_and_their_own_words(offered) -> None:
    assert offered("com") == ["compare", "comment"]
    assert offered("") == list(verbs())
    assert offered("explain", "l") == ["latest"]


def test_outside_of_a_checkout_or_with_a_broken_one_nothing_is_offered_and_nothing_said(
    offered, tmp_path: Path, capsys
) -> None:
    (tmp_path / "engine" / "builds.toml").write_text("[")
    assert offered("run", "--build", "t") == []
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def binary_there(tmp_path, monkeypatch):
    """A checkout with an environment that is not active."""
    binary = tmp_path / ".venv" / "bin" / "hybridwatch"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    return binary


@pytest.mark.parametrize("absolute", [False, True])
def test_an_environment_that_is_not_active_is_named(binary_there, monkeypatch, absolute) -> None:
    called = str(binary_there) if absolute else ".venv/bin/hybridwatch"
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == ".venv/bin/hybridwatch"


def test_an_active_environment_needs_no_path(binary_there, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(binary_there.parent))
    monkeypatch.setattr(sys, "argv", [str(binary_there)])
    assert program() == "hybridwatch"


def test_a_module_is_called_as_a_module(binary_there, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/src/hybridwatch/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(binary_there.with_name("python")))
    assert program() == ".venv/bin/python -m hybridwatch"


def test_who_else_calls_gets_the_plain_name(binary_there, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    assert program() == "hybridwatch"
