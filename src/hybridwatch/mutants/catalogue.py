"""The mutants that there are, as ``engine/mutants/*.toml`` describes them.

The files are part of this package and of the plugin in the engine, which holds what each does.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import ScenarioError
from hybridwatch.scenario.toml_file import refusing_toml

Half = Literal["first", "second"]

MECHANISMS: Final = (
    *("slot lifetime", "block table", "condense and move", "conv window", "chunk boundary"),
    *("prefix hit", "preemption", "resume", "accepted counts", "draft rows", "padding"),
    *("dummy runs", "transfer", "scheduler budget", "sampler", "dtype", "speed", "host sync"),
)
"""What can be wrong in an engine, in the order of tables."""


class Mutant(BaseModel):
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    half: Half
    mechanism: str
    target: tuple[str, ...] = Field(strict=False, min_length=1)
    by: str
    resembles: str
    what: str
    parameters: dict[str, bool | int | float | str] = {}
    process: Literal["worker", "scheduler"] = "worker"
    phase: Literal["answers", "host-sync", "performance"] = "answers"
    equivalent: str = ""

    @property
    def digest(self) -> str:
        """Short digest of what it does; one that was changed is measured anew."""
        keys = {"target", "by", "parameters", "process", "phase", "equivalent"}
        text = self.model_dump_json(include=keys)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mutant: dict[str, Mutant]


def load_mutants(path: Path) -> dict[str, Mutant]:
    """Read what a file says of mutants, by name.

    Raises:
        ScenarioError: The file cannot be read or says something we do not understand; one line per
            wrong key.
    """
    name = Path("engine") / "mutants" / path.name
    with refusing_toml(path, _File, ScenarioError, name):
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    for mutant, one in found.items():
        if one.mechanism not in MECHANISMS:
            raise ScenarioError(
                f"{name}: mutant.{mutant}.mechanism: expected one of {', '.join(MECHANISMS)}, "
                f"found {one.mechanism}"
            )
    return found


@cache
def catalogue() -> Mapping[str, Mutant]:
    """Every mutant by its name, in the order of tables: the first half first.

    Raises:
        ScenarioError: A file is wrong.
    """
    folder = Path(__file__).parent
    halves: list[dict[str, Mutant]] = [
        load_mutants(folder / f"{h}.toml") for h in ("first", "second")
    ]
    return {**halves[0], **halves[1]}
