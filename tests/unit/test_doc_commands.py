"""Every ``hybridwatch`` command in a block or a code span of a page: click knows its words."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from hybridwatch.cli.main import cli
from tests.unit.test_doc_links import PAGES, name_of, text_of

BLOCK = re.compile(r"^ *```[^\n]*\n(.*?)^ *```|^((?:    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
CALL = re.compile(r"(?:^|[\s'\"/|;&(])hybridwatch (?=[a-z][a-z-]*(?:\s|$))")


def lines_of(page: str) -> Iterator[str]:
    for found in BLOCK.finditer(page):
        yield from re.sub(r"\\\n\s*", "", found.group(1) or found.group(2) or "").splitlines()
    for span in SPAN.findall(BLOCK.sub("", page)):
        if CALL.match(span := " ".join(span.split())):
            yield span.replace("\\|", "|")


def commands_of(page: str) -> Iterator[list[str]]:
    """The words behind the program's name, up to the end of that command."""
    for line in lines_of(page):
        for called in CALL.finditer(line):
            lexer = shlex.shlex(line[called.end() :], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = []
            try:
                for word in lexer:
                    if set(word) <= set("();<>|&"):
                        break
                    words.append(word)
            except ValueError:  # the call itself stands in quotation marks, which end behind it
                words = line[called.end() :].split()
            yield words


def fault_of(words: list[str]) -> str | None:
    """Say which verb, option or choice click does not know."""
    command: click.Command = cli
    context = click.Context(cli, info_name="hybridwatch")
    try:
        while isinstance(command, click.Group) and words and words[0][0] != "-":
            name, found, rest = command.resolve_command(context, words)
            assert found is not None
            command, words = found, rest
            context = click.Context(command, info_name=name, parent=context)
        options, _, _ = command.make_parser(context).parse_args(words)
        for parameter in command.params:
            value = options.get(parameter.name or "")
            if not isinstance(parameter.type, click.Choice) or not isinstance(value, str):
                continue
            if not value.isupper():  # a name in capitals stands for something of the reader's
                parameter.type.convert(value, parameter, context)
    except click.UsageError as error:
        return f"{context.command_path}: {error.format_message()}"
    return None


def test_every_command_of_a_page_is_one_of_ours() -> None:
    called = [(name_of(page), words) for page in PAGES for words in commands_of(text_of(page))]
    assert len(called) > 200
    faults = [f"{page}: {fault}" for page, words in called if (fault := fault_of(words))]
    assert faults == []


@pytest.mark.parametrize(
    "page",
    [
        "    hybridwatch run smoke --known-bat\n",
        "```bash\n.venv/bin/hybridwatch run smoke --build x \\\n  --thorogh\n```\n",
        "```yaml\n- run: hybridwatch gate --junit gate.xml --colour\n```\n",
        "| a row | `hybridwatch export --to csv \\| hybridwatch detekt -` |\n",
        "Over two\nlines `hybridwatch engine\nchek cpu-0.27.1`.\n",
        "    ls && HYBRIDWATCH_HOME=~/x hybridwatch export latest --to exel  # a choice\n",
    ],
)
def test_a_planted_wrong_word_is_found(page: str) -> None:
    assert [fault for words in commands_of(page) if (fault := fault_of(words))] != []
