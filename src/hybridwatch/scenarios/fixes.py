"""The fixes and faults that scenarios and builds can name: what is shipped, and the user's own.

Those are in folders of the home and of packages that name themselves, and the engine is given the
folders: files there say what each is, modules next to them what it does. Faults can be mutants and
are planted by a label (``cpu-0.27.1+mine``).
"""

import hashlib
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field

from hybridwatch.errors import HybridwatchError, ScenarioError
from hybridwatch.scenarios.validation import Choice, Part, refusing_toml
from hybridwatch.system.home import home, is_extending

FILES: Final = "*.toml"

Kind = Literal["fixes", "mutants"]
"""What a folder has: the folder of the home is called so, and the entry point ``hybridwatch.``."""
OWN: Final = "own"
Half = Literal["first", "second", "own"]
MECHANISMS: Final = (
    *("slot lifetime", "block table", "condense and move", "conv window", "chunk boundary"),
    *("prefix hit", "preemption", "resume", "accepted counts", "draft rows", "padding"),
    *("dummy runs", "transfer", "scheduler budget", "sampler", "answer end", "dtype", "speed"),
    *("host sync", "adapter"),
)
"""What can be wrong in an engine, in the order of tables."""


def own_folders(kind: Kind) -> tuple[Path, ...]:
    """Find the folders that have something: the home's, then those of packages."""
    folders = [*_of_the_home(kind), *map(_of_a_package, entry_points(group=f"hybridwatch.{kind}"))]
    return tuple(folder for folder in folders if any(folder.glob(FILES)))


def own_files(kind: Kind) -> tuple[Path, ...]:
    """Find the files that say what there is, folder by folder."""
    return tuple(file for folder in own_folders(kind) for file in sorted(folder.glob(FILES)))


def _of_the_home(kind: Kind) -> list[Path]:
    try:
        folder = home()
    except HybridwatchError:
        return []
    return [folder / kind] if is_extending(folder) else []


def _of_a_package(point: EntryPoint) -> Path:
    try:
        spec = find_spec(point.value)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ScenarioError(
            f"entry point {point.name} of {point.group}: expected a package, found {point.value}"
        )
    return Path(spec.submodule_search_locations[0])


class Mutant(Part):
    """One ``[mutant.<name>]`` table; the head of ``first.toml`` says what each key means."""

    half: Half = OWN
    mechanism: str
    target: tuple[str, ...] = Field(strict=False, min_length=1)
    by: str
    resembles: str
    what: str
    parameters: dict[str, bool | int | float | str] = Field(default_factory=dict)
    process: Literal["worker", "scheduler"] = "worker"
    phase: Literal["answers", "host-sync", "performance"] = "answers"
    equivalent: str = ""

    @property
    def digest(self) -> str:
        """Short digest of what it does; one that was changed is measured again."""
        keys = {"target", "by", "parameters", "process", "phase", "equivalent"}
        return hashlib.sha256(self.model_dump_json(include=keys).encode()).hexdigest()[:12]


class _FaultsFile(Part):
    mutant: dict[str, Mutant]


def load_mutants(path: Path, name: Path | None = None) -> dict[str, Mutant]:
    """Read what a file says of mutants, by name; messages call it ``name``, or by its path."""
    called = name or path
    with refusing_toml(path, _FaultsFile, ScenarioError, called):
        found = _FaultsFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    for mutant, one in found.items():
        if one.mechanism not in MECHANISMS:
            raise ScenarioError(
                f"{called}: mutant.{mutant}.mechanism: expected one of {', '.join(MECHANISMS)}, "
                f"found {one.mechanism}"
            )
    return found


class OwnFault(NamedTuple):
    """A fault, and the file that describes it."""

    mutant: Mutant
    file: Path


def own_faults() -> dict[str, OwnFault]:
    """Read every fault of the user's own, by name."""
    found: dict[str, OwnFault] = {}
    for file in own_files("mutants"):
        for name, mutant in load_mutants(file).items():
            if name in found:
                raise ScenarioError(
                    f"{file}: mutant.{name}: expected a name that is not taken yet, found one that "
                    f"{found[name].file} has"
                )
            if mutant.half != OWN:
                raise ScenarioError(
                    f"{file}: mutant.{name}.half: expected none, found {mutant.half}: the halves "
                    "are of what is shipped"
                )
            found[name] = OwnFault(mutant, file)
    return found


_NAME: Final = Path("engine") / "fixes.toml"
_FILE: Final = Path(__file__).with_name("fixes.toml")

OWN_DEFAULTS: Final[Mapping[str, Any]] = {
    "upstream": "none",
    "present_from": "no release",
    "scenario": "",
    "occasion": "replays",
    "remove_when": "",
    "releases": {},
}
"""What a user's own fix need not say: whether a release has it, its probe alone decides."""


_V1_FILES: Final = tuple(
    f"v1/worker/{name}.py" for name in ("gpu_model_runner", "block_table", "mamba_utils")
)
_V2_FOLDER: Final = "v1/worker/gpu/"


class FixEntry(Part):
    """One ``[fix.<id>]`` table; the head of the file says what each key means."""

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

    @property
    def is_of_v1(self) -> bool:
        """Whether what it changes is code that model runner V2 does not run."""
        return _V2_FOLDER not in self.target and any(file in self.target for file in _V1_FILES)


class _FixesFile(Part):
    fix: dict[str, FixEntry]


def load_fixes(
    path: Path, name: Path | None = None, defaults: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, FixEntry]:
    """Read what a file says of fixes, by id, with ``defaults`` of keys that a fix need not have."""
    with refusing_toml(path, _FixesFile, ScenarioError, name):
        content = _completed(tomllib.loads(path.read_text(encoding="utf-8")), defaults)
        return _FixesFile.model_validate(content).fix


def _completed(content: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    tables = content.get("fix")
    if not isinstance(tables, dict):
        return dict(content)
    completed = {
        fix_id: {**defaults, **table} if isinstance(table, dict) else table
        for fix_id, table in tables.items()
    }
    return {**content, "fix": completed}


CATALOGUE: Final[Mapping[str, FixEntry]] = load_fixes(_FILE, _NAME)
"""Every fix that is shipped by its id, in the order of tables and labels."""
FIXES: Final[tuple[str, ...]] = tuple(CATALOGUE)
"""Ids of those; each is some scenario's known-bad control."""

NO_FIX: Final = "none"
"""What a scenario names that looks for no bug that is known."""

FIX_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    fix_id: fix.parts for fix_id, fix in CATALOGUE.items() if fix.parts
}
"""Fixes that consist of others: the whole is switched by switching its parts."""


def own_fixes() -> dict[str, FixEntry]:
    """Read every fix of the user's own, by id."""
    found: dict[str, FixEntry] = {}
    files = dict.fromkeys(CATALOGUE, _NAME)
    for file in own_files("fixes"):
        fixes = load_fixes(file, defaults=OWN_DEFAULTS)
        for fix_id, fix in fixes.items():
            key = f"{file}: fix.{fix_id}"
            if fix_id in files:
                raise ScenarioError(
                    f"{key}: expected an id that is not taken yet, found one that {files[fix_id]} "
                    "has"
                )
            if foreign := [part for part in fix.parts if part not in fixes]:
                raise ScenarioError(
                    f"{key}.parts: expected fixes of this file, found {', '.join(foreign)}"
                )
            files[fix_id] = file
        found |= fixes
    return found


def catalogue() -> dict[str, FixEntry]:
    """Give every fix by its id: what is shipped, then the user's own."""
    return {**CATALOGUE, **own_fixes()}


def list_parts(fix: str) -> tuple[str, ...]:
    """Name the fixes by which one is switched: its parts, or itself."""
    if fix in CATALOGUE or fix == NO_FIX:
        return FIX_PARTS.get(fix, (fix,))
    own = own_fixes().get(fix)
    return own.parts if own and own.parts else (fix,)


def start_fixes() -> frozenset[str]:
    """Name the fixes that act while an engine starts: builds that differ in one have one each."""
    return frozenset(
        fix_id for fix_id, fix in catalogue().items() if fix.switch == "start" and not fix.parts
    )


FixId = Annotated[str, Choice(FIXES, own_fixes)]
GuardedFix = Annotated[str, Choice((*FIXES, NO_FIX), own_fixes)]


def unprobed(release: object) -> list[str]:
    """Name the fixes that are shipped and do not say whether a release has them."""
    return [fix_id for fix_id, fix in CATALOGUE.items() if release not in fix.releases]


def variant_fixes(release: str, accelerator: str, kind: str) -> list[str]:
    """List what a build switches to have every fix that it can have, or as few as it can.

    A fix of which every part is switched is named in place of its parts. ``kind`` is ``patched``,
    which has put in what the release lacks, or ``reverted``, which has taken out what it has.
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
