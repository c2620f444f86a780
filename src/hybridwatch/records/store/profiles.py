"""Profiles of runs: ``results/profiles/<testbed>/<run id>.folded.gz``, stacks of both sides.

A line ``SIDE;pass N;FRAME;FRAME SAMPLES`` a stack, root first, a frame as ``function (file:line)``.
flamegraph.pl and speedscope read the text as it is.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.errors import RecordError
from hybridwatch.records.file_parts import safe_name
from hybridwatch.records.store.mirror import adding
from hybridwatch.system.files import create_all, make_folder, named_errors

PROFILES: Final = "profiles"
PROFILE_SUFFIX: Final = ".folded.gz"
Passes: TypeAlias = Sequence[Mapping[tuple[str, ...], int]]
"""The samples of each stack of a side, for each pass of the load."""

_SIDES: Final = ("baseline", "contender")
_LINE: Final = re.compile(r"(baseline|contender);pass ([1-9]\d?);(.+) (\d{1,9})\n")
_MOST_BYTES: Final = 32 * 2**20
"""Of the text. Twelve passes of the smoke load have some 9 MB."""


def find_profile(results: Path, testbed: str, run_id: str) -> Path:
    """Name the file of a run's profile, whether it is there or not."""
    return results / PROFILES / safe_name(testbed) / f"{safe_name(run_id)}{PROFILE_SUFFIX}"


def write_profile(path: Path, results: Path, sides: Sequence[Passes]) -> None:
    """Store the stacks of both sides at ``find_profile``; what is there already stays."""
    text = "".join(
        f"{side};pass {number};{';'.join(stack)} {samples}\n"
        for side, passes in zip(_SIDES, sides, strict=True)
        for number, stacks in enumerate(passes, start=1)
        for stack, samples in sorted(stacks.items())
    )
    make_folder(path.parent)
    with named_errors(path), adding(results, [path]):
        create_all([(path, gzip.compress(text.encode(), mtime=0))], [])


def read_profile(path: Path) -> tuple[Passes, Passes] | None:
    """Read the stacks of baseline and contender; ``None`` where there is no profile."""
    try:
        with gzip.open(path) as file:
            return _parse(file.read(_MOST_BYTES + 1))
    except FileNotFoundError:
        return None
    except (RecordError, OSError, EOFError, ValueError, zlib.error) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def _parse(text: bytes) -> tuple[Passes, Passes]:
    if len(text) > _MOST_BYTES:
        raise RecordError(f"expected at most {_MOST_BYTES} bytes of text")
    found: dict[str, dict[int, Counter[tuple[str, ...]]]] = {side: {} for side in _SIDES}
    for at, line in enumerate(text.decode().splitlines(keepends=True), start=1):
        if (read := _LINE.fullmatch(line)) is None:
            raise RecordError(f"line {at}: expected SIDE;pass N;FRAME;... SAMPLES, found {line!r}")
        side, number, stack, samples = read.groups()
        found[side].setdefault(int(number), Counter())[tuple(stack.split(";"))] += int(samples)
    baseline, contender = ([passes[n] for n in sorted(passes)] for passes in found.values())
    return baseline, contender
