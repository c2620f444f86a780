"""Pinned baselines: ``results/baselines.toml``, written by people.

::

    [[baseline]]
    scenario = "smoke/padded-graph-rows"
    testbed = "amd-epyc-2c-ecb3ae"
    run = "dcc7e0b6"
    side = 0
    reason = "last release before the graph rework"
    date = 2026-11-21
    who = "on duty"       # optional

One scenario has one baseline on a testbed.

Runs that came with the repository: ``results/examples.txt``, an id on each line.

They show what a record, a verdict and a page look like before anything was measured. They are not
measured again, so none of them is ever overdue.
"""

import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.records.store.mirror import refreshed
from hybridwatch.records.store.reader import read_file

EXAMPLES: Final = "examples.txt"
_MOST_LISTED_BYTES: Final = 2**20
BASELINES: Final = "baselines.toml"
_MOST_BYTES: Final = 2**20


def read_examples(results: Path) -> frozenset[str]:
    """Give the ids of a store's examples; none where the file is not there."""
    path = results / EXAMPLES
    try:
        return frozenset(read_file(path, _MOST_LISTED_BYTES).decode().split())
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{path}: expected the ids of runs: {error}") from error


class Baseline(BaseModel):
    """A side of a run that others are held against.

    ``run`` may be the beginning of its id, and ``side`` is an index into its builds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    scenario: Annotated[str, Field(min_length=1)]
    testbed: Annotated[str, Field(min_length=1)]
    run: Annotated[str, Field(min_length=1)]
    side: Annotated[int, Field(ge=0, le=1)] = 0
    reason: Annotated[str, Field(min_length=1)]
    date: date
    who: str | None = None


class _BaselinesFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    baseline: list[Baseline] = []


def read_baselines(results: Path) -> tuple[Baseline, ...]:
    """Read what is pinned.

    Raises:
        RecordError: The file is no such TOML, or pins a scenario twice on one testbed.
    """
    path = refreshed(results) / BASELINES
    try:
        raw = tomllib.loads(read_file(path, _MOST_BYTES).decode())
    except FileNotFoundError:
        return ()
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: expected TOML: {error}") from error
    try:
        found = _BaselinesFile.model_validate(raw).baseline
    except ValidationError as error:
        finding = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in finding["loc"])
        raise RecordError(
            f"{path}: {where}: {finding['msg']}, found {finding['input']!r}"
        ) from error
    seen: set[tuple[str, str]] = set()
    for one in found:
        key = one.scenario, one.testbed
        if key in seen:
            raise RecordError(f"{path}: expected one baseline of {' on '.join(key)}, found two")
        seen.add(key)
    return tuple(found)
