"""What a pack leaves out, takes as the machine has it, or builds: ``engine/pack.toml``."""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final

from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import BuildError
from hybridwatch.scenarios.validation import closest, quoted, refusing_toml
from hybridwatch.system.home import shipped_engine

_FILE: Final = Path("engine") / "pack.toml"
Text = Annotated[str, Field(pattern=r"\S")]


class LeaveOutEntry(BaseModel):
    """One thing that is not packed.

    Attributes:
        id: Name for ``--keep`` and ``--leave-out``.
        why: Why nothing misses it.
        packages: Distributions that are not packed at all.
        files: Of wheels that are packed: ``DISTRIBUTION:PATTERN``, a shell pattern of paths.
        usual: Whether it is left out when nobody says anything about it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Text
    why: Text
    packages: list[Text] = Field(default_factory=list)
    files: list[Annotated[str, Field(pattern=r"^[^:]+:.+$")]] = Field(default_factory=list)
    usual: bool = True


class _LeaveOutGroup(BaseModel):
    """Packages that are treated alike."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    packages: list[Text]
    why: Text


class _LeaveOutFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    leave_out: list[LeaveOutEntry] = Field(default_factory=list)
    as_it_is: list[_LeaveOutGroup] = Field(default_factory=list)
    source_only: list[_LeaveOutGroup] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is left out of one pack.

    Attributes:
        entries: In the order of the file.
        as_it_is: Distributions of which any version that the machine has is good.
        source_only: Distributions that are released without a wheel, which is then built here.
    """

    entries: Sequence[LeaveOutEntry]
    as_it_is: frozenset[str] = frozenset()
    source_only: frozenset[str] = frozenset()

    @property
    def packages(self) -> frozenset[str]:
        """Distributions that are not packed, named as pip compares names."""
        return frozenset(
            canonicalize_name(name) for entry in self.entries for name in entry.packages
        )

    def find_entry(self, distribution: str, path: str) -> LeaveOutEntry | None:
        """Say why a file of a wheel is left out; ``None`` when it is packed."""
        for entry in self.entries:
            for file in entry.files:
                owner, _, pattern = file.partition(":")
                if canonicalize_name(owner) == distribution and fnmatchcase(path, pattern):
                    return entry
        return None


def read_left_out(home: Path, *, keep: Collection[str] = (), also: Collection[str] = ()) -> LeftOut:
    """Read what is left out.

    Args:
        home: The home or checkout of the builds.
        keep: Entries that are packed all the same, by id.
        also: Entries that are left out besides the usual ones, by id.

    Raises:
        BuildError: The file is not valid, or no entry has such an id.
    """
    path = shipped_engine(home) / _FILE.name
    with refusing_toml(path, _LeaveOutFile, BuildError, _FILE):
        found = _LeaveOutFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    known = [entry.id for entry in found.leave_out]
    for word in (*keep, *also):
        if word not in known:
            raise BuildError(f"{_FILE}: nothing is called {quoted(word)}; {closest(word, known)}")
    entries = [e for e in found.leave_out if e.id not in keep and (e.usual or e.id in also)]
    return LeftOut(entries, _names(found.as_it_is), _names(found.source_only))


def _names(groups: Iterable[_LeaveOutGroup]) -> frozenset[str]:
    return frozenset(canonicalize_name(name) for group in groups for name in group.packages)
