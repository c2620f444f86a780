"""What every experiment is given, and the outcome of all as Markdown and as plain values."""

import argparse
import math
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hybridwatch.analysis.calibration import CONFIDENCE, Figure, FigureForm, FigurePromise


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where an experiment is made."""

    seed: int
    quick: bool
    on_progress: Callable[[str], None]

    def times(self, full: int, quick: int) -> int:
        """Choose how often to simulate."""
        return quick if self.quick else full

    def rng(self, name: str) -> Generator:
        """Give an experiment its own randomness, whatever ran before it."""
        return np.random.default_rng((self.seed, zlib.crc32(name.encode())))


@dataclass(frozen=True, slots=True)
class LabTable:
    """Figures side by side."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LabSection:
    """The outcome of one experiment."""

    title: str
    text: str
    figures: tuple[Figure, ...]
    tables: tuple[LabTable, ...] = ()


SCHEMA: Final = 1
_WIDTH: Final = 100

_PROMISES: Final = {
    FigurePromise.MOST: "at most",
    FigurePromise.LEAST: "at least",
    FigurePromise.LEVEL: "at most a level of",
}
_INTRODUCTION: Final = """\
# Calibration: how often our rules are right

<!-- Written by a program; do not edit. -->

Every number here was made by

    {command}

and comes out the same on every run with this seed (times excepted). The rules under test are
those that ship, as [judging.md](../../docs/judging.md) describes them. Intervals are 95 %:
Wilson's for shares, Tango's for differences of paired shares, exact Poisson for rates, order
statistics for medians. A *level* is that of an exact test, which spends it whole, so half of all
estimates lie beyond it: it is kept unless the whole interval does.
[calibration.json](../../docs/calibration.json) holds the same for the dashboard.\
"""


def to_markdown(sections: Sequence[LabSection], command: str) -> str:
    """Write the document."""
    return "\n\n".join(_blocks(sections, command)) + "\n"


def to_json(sections: Sequence[LabSection], command: str, seed: int) -> dict[str, Any]:
    """Give figures and tables as plain values.

    A figure has ``id`` (stable), ``what``, ``form`` (``share``: a fraction, or ``number``),
    ``value`` with the ends ``low`` and ``high`` of its interval, ``simulations``, and ``bound``,
    ``bound_is`` (``most``, ``least`` or ``level``) and ``met``, null where nothing was promised.
    Numbers that are not known are null; there is no NaN.
    """
    return {
        "schema_version": SCHEMA,
        "command": command,
        "seed": seed,
        "confidence": CONFIDENCE,
        "sections": [
            {
                "title": section.title,
                "text": section.text,
                "figures": [_plain(one) for one in section.figures],
                "tables": [
                    {
                        "caption": t.caption,
                        "header": list(t.header),
                        "rows": list(map(list, t.rows)),
                    }
                    for t in section.tables
                ],
            }
            for section in sections
        ],
    }


def _blocks(sections: Sequence[LabSection], command: str) -> Iterator[str]:
    yield _INTRODUCTION.format(command=command)
    promised = [one for section in sections for one in section.figures if one.bound]
    if promised:
        yield "## What was promised"
        yield _figures(promised)
    for section in sections:
        yield f"## {section.title}"
        yield _filled(section.text)
        if free := [one for one in section.figures if not one.bound]:
            yield _figures(free)
        for table in section.tables:
            yield f"{table.caption}:"
            yield _grid(table.header, table.rows)


def _filled(text: str) -> str:
    # A number and its per cent sign stay on one line.
    return textwrap.fill(text.replace(" %", "\xa0%"), _WIDTH).replace("\xa0", " ")


def _figures(figures: Sequence[Figure]) -> str:
    header = ["figure", "value", "95 % interval", "simulations"]
    rows = [_row(one) for one in figures]
    if any(one.bound for one in figures):
        header += ["bound", "met"]
        for row, one in zip(rows, figures, strict=True):
            row += [_bound(one), "yes" if one.met else "**no**"]
    return _grid(header, rows)


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _row(one: Figure) -> list[str]:
    if not one.simulations:
        return [one.what, "-", "-", "0"]
    span = f"{_number(one, one.low)} to {_number(one, one.high)}"
    return [one.what, _number(one, one.value), span, f"{one.simulations}"]


def _bound(one: Figure) -> str:
    if one.bound is None:
        return ""
    return f"{_PROMISES[one.bound.promise]} {_number(one, one.bound.limit)}"


def _number(one: Figure, value: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    return f"{100 * value:.1f} %" if one.form is FigureForm.SHARE else f"{value:.3g}"


def _plain(one: Figure) -> dict[str, Any]:
    return {
        "id": one.id,
        "what": one.what,
        "form": one.form.value,
        "value": _finite(one.value),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "simulations": one.simulations,
        "bound": None if one.bound is None else one.bound.limit,
        "bound_is": None if one.bound is None else one.bound.promise.value,
        "met": one.met,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


Page = Callable[[int, int, Callable[[str], None]], str]
"""Makes the text of a seed and a number of cases, and says how far it is."""


def write_page(about: str | None, counted: str, default: int, page: Page) -> None:
    """Read the words of the command line, simulate, and write the page or print it.

    ``counted``: what is simulated so many times; the name of the option. ``default``: how many
    times without it.
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
