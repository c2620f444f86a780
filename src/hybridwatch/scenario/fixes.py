"""The fixes that scenarios and engine builds can name, as ``engine/fixes.toml`` describes them.

The file is part of this package and of the plugin in the engine (``hybridwatch_engine.fixes``),
which holds what each fix does.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import ScenarioError
from hybridwatch.scenario.toml_file import refusing_toml

_NAME: Final = Path("engine") / "fixes.toml"
_FILE: Final = Path(__file__).with_name("fixes.toml")


class Fix(BaseModel):
    """One ``[fix.<id>]`` table; the head of the file says what each key means."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    target: str
    why: str
    how: str
    upstream: str
    present_from: str
    switch: Literal["live", "start", "probe"]
    scenario: str
    occasion: str
    remove_when: str
    releases: dict[str, Literal["present", "lacking", "not-applicable"]]
    sources: dict[str, str] = Field(default_factory=dict)
    parts: tuple[str, ...] = Field(default=(), strict=False)
    module: str = ""
    ways: tuple[Literal["apply", "revert"], ...] = Field(default=(), strict=False)
    accelerator: Literal["cpu", "cuda"] | None = None
    lossless: bool = False
    breaks: str = ""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    fix: dict[str, Fix]


def load_fixes(path: Path) -> dict[str, Fix]:
    """Read what a file says of fixes, by id.

    Raises:
        ScenarioError: The file cannot be read or says something we do not understand; one line per
            wrong key.
    """
    with refusing_toml(path, _File, ScenarioError, _NAME):
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).fix


CATALOGUE: Final[Mapping[str, Fix]] = load_fixes(_FILE)
"""Every fix by its id, in the order of tables and labels."""
FIXES: Final[tuple[str, ...]] = tuple(CATALOGUE)
"""Ids of the fixes that can be applied or reverted; each is some scenario's known-bad control."""

NO_FIX: Final = "none"
"""What a scenario names that looks for no bug that is known."""

if TYPE_CHECKING:
    FixId = str
    GuardedFix = str
else:
    # A file that names another fix is refused with the known ones, as for any other choice.
    FixId = Literal[FIXES]
    GuardedFix = Literal[(*FIXES, NO_FIX)]

FIX_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    fix_id: fix.parts for fix_id, fix in CATALOGUE.items() if fix.parts
}
"""Fixes that consist of others: the whole is switched by switching its parts."""

START_FIXES: Final[frozenset[str]] = frozenset(
    fix_id for fix_id, fix in CATALOGUE.items() if fix.switch == "start" and not fix.parts
)
"""Fixes that act while an engine starts: builds that differ in one have an engine each."""


def unprobed(release: object) -> list[str]:
    """Name the fixes that do not say whether a release has them."""
    return [fix_id for fix_id, fix in CATALOGUE.items() if release not in fix.releases]


def variant_fixes(release: str, accelerator: str, kind: str) -> list[str]:
    """List what a build switches to have every fix that it can have, or as few as it can.

    A fix of which every part is switched is named in place of its parts.

    Args:
        release: Of which every fix says whether it has it.
        accelerator: ``cpu`` or ``cuda``.
        kind: ``patched`` has put in what the release lacks, ``reverted`` taken out what it has.
    """
    state, way = ("lacking", "apply") if kind == "patched" else ("present", "revert")
    singly = {
        fix_id
        for fix_id, fix in CATALOGUE.items()
        if fix.releases[release] == state
        and way in fix.ways
        and fix.accelerator in {None, accelerator}
    }
    wholes = {whole: parts for whole, parts in FIX_PARTS.items() if singly.issuperset(parts)}
    switched = (singly | wholes.keys()) - {part for parts in wholes.values() for part in parts}
    return [fix_id for fix_id in FIXES if fix_id in switched]
