"""Prints names and texts from files without their control sequences."""

import click
from rich.text import Text

from hybridwatch.system.plain_text import visible

_LINE_FEED = "\\x0a"


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each as one: neither a name nor a text can make another of them."""
    for line in lines:
        click.echo(visible(line).replace("\n", _LINE_FEED), err=err)


def as_text(text: str) -> Text:
    """Give a text for a rich console that shows it as it is; line ends stay."""
    return Text(visible(text))
