"""The command line of a simulation that writes a page."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

Page = Callable[[int, int, Callable[[str], None]], str]
"""Makes the text of a seed and a number of cases, and says how far it is."""


def write_page(about: str | None, counted: str, default: int, page: Page) -> None:
    """Read the words of the command line, simulate, and write the page or print it.

    Args:
        about: What ``--help`` says.
        counted: What is simulated so many times; the name of the option.
        default: How many times without it.
        page: Makes the text.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(f"--{counted}", dest="count", type=int, default=default)
    parser.add_argument("--write", type=Path)
    wish = parser.parse_args()
    text = page(wish.seed, wish.count, lambda line: print(line, file=sys.stderr))  # noqa: T201
    if wish.write is None:
        print(text)  # noqa: T201
    else:
        wish.write.write_text(text, encoding="utf-8")
