"""Every verb's help ends with commands that can be typed as they stand."""

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
from click.testing import CliRunner

from hybridwatch.cli.main import cli, verbs

ROOT = Path(__file__).parents[3]


def commands() -> Iterator[tuple[str, ...]]:
    yield ()
    for verb in verbs():
        yield (verb,)
        command = cli.get_command(click.Context(cli), verb)
        if isinstance(command, click.Group):
            yield from ((verb, name) for name in command.commands)


@cache
def examples_of(words: tuple[str, ...]) -> list[str]:
    answer = CliRunner().invoke(cli, [*words, "--help"])
    assert answer.exit_code == 0, answer.output
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
