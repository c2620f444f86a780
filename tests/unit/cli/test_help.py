"""Every verb's help ends with commands that can be typed as they stand."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import VERBS, cli

ROOT = Path(__file__).parents[3]


def commands() -> Iterator[tuple[str, ...]]:
    yield ()
    for verb in VERBS:
        yield (verb,)
        command = cli.get_command(click.Context(cli), verb)
        if isinstance(command, click.Group):
            yield from ((verb, name) for name in command.commands)


EVERY = list(commands())


def examples_of(words: tuple[str, ...]) -> list[str]:
    answer = CliRunner().invoke(cli, [*words, "--help"])
    assert answer.exit_code == 0, answer.output
    lines = answer.output.partition("Examples:\n")[2].splitlines()
    return [line.strip() for line in lines if line.strip().startswith("hybridwatch ")]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_has_an_example_of_this_very_verb(words) -> None:
    found = examples_of(words)
    assert found
    assert all(line.split()[1 : len(words) + 1] == list(words) for line in found[:1])


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_example_is_a_call_that_its_verb_takes(words, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    for line in examples_of(words):
        for part in line.split(" | "):
            context = click.Context(cli, info_name="hybridwatch")
            _parse(cli, context, shlex.split(part)[1:])


def _parse(group: click.Group, parent: click.Context, words: list[str]) -> None:
    name, command, rest = group.resolve_command(parent, words)
    assert command is not None, name
    if isinstance(command, click.Group):
        _parse(command, click.Context(command, parent=parent, info_name=name), rest)
    else:
        command.make_context(name, rest, parent=parent)
