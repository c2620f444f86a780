"""A mutant as a table describes it: one of the lab, or somebody's own."""

import hashlib
import tomllib
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import ScenarioError
from hybridwatch.scenarios.toml_file import refusing_toml

OWN: Final = "own"
Half = Literal["first", "second", "own"]

MECHANISMS: Final = (
    *("slot lifetime", "block table", "condense and move", "conv window", "chunk boundary"),
    *("prefix hit", "preemption", "resume", "accepted counts", "draft rows", "padding"),
    *("dummy runs", "transfer", "scheduler budget", "sampler", "dtype", "speed", "host sync"),
)
"""What can be wrong in an engine, in the order of tables."""


class Mutant(BaseModel):
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means.

    Those of somebody's own belong to neither half of what is shipped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    half: Half = OWN
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


def load_mutants(path: Path, name: Path | None = None) -> dict[str, Mutant]:
    """Read what a file says of mutants, by name.

    Args:
        path: The file.
        name: How messages call it; by its path when not given.

    Raises:
        ScenarioError: The file cannot be read or says something we do not understand; one line per
            wrong key.
    """
    called = name or path
    with refusing_toml(path, _File, ScenarioError, called):
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    for mutant, one in found.items():
        if one.mechanism not in MECHANISMS:
            raise ScenarioError(
                f"{called}: mutant.{mutant}.mechanism: expected one of {', '.join(MECHANISMS)}, "
                f"found {one.mechanism}"
            )
    return found
