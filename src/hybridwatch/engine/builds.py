"""Named engine builds (``engine/builds.toml``) and the labels that switch fixes on them.

A label is a build's name followed by switches: ``cpu-0.27.1~padded-rows-prefilling`` is the build
with that fix taken out, ``+`` puts one in. ``+`` also plants a fault, such as ``slow-step``.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import BuildError
from hybridwatch.scenario.fixes import FIX_PARTS, FIXES, FixId, unprobed, variant_fixes
from hybridwatch.scenario.toml_file import refusing_toml
from hybridwatch.scenario.validation_text import closest, quoted

HOME_VARIABLE: Final = "HYBRIDWATCH_HOME"
DEFAULT_BUILD: Final = "cpu-0.27.1"
"""What is measured when nobody names a build; runs everywhere."""

FAULTS: Final = (
    "slow-step",
    "slow-step-2",
    "slow-step-5",
    "slow-step-10",
    "busy-step-5",
    "busy-step-10",
    "unzeroed-state",
    "shifted-decay",
    "unwritten-state",
)
"""What a label may plant; the plugin says what each does (``hybridwatch_engine.planted``)."""

_BUILDS_FILE: Final = Path("engine") / "builds.toml"
_OWN_CHECKOUT: Final = Path(__file__).parents[3]  # src/hybridwatch/engine/builds.py

_NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_SWITCH = re.compile(r"([~+])([^~+]*)")
_WORDS: Final = (*FIXES, *FAULTS)
_LAST_LINE: Final = "last_line"
_OF_A_VARIANT: Final = {"like", "fixes"}
_KINDS: Final[Mapping[str, str]] = {"patched": "apply", "reverted": "revert"}

Text = Annotated[str, Field(pattern=r"\S")]
Python = Annotated[str, Field(pattern=r"^3\.\d+$", description="a version such as 3.11")]


class _Entry(BaseModel):
    """One ``[builds.<name>]`` table as it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    release: Text
    accelerator: Literal["cpu", "cuda"]
    distribution: Text
    python: Python
    newest_python: Python | None = None
    torch: Text
    lock: Text
    fixes: dict[FixId, Literal["apply", "revert"]] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    flags: dict[str, str] = Field(default_factory=dict)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    builds: dict[str, _Entry]
    last_line: Text | None = None


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """A named build: what its environment holds and how its engine is started.

    Attributes:
        name: The entry of ``engine/builds.toml``.
        release: The vLLM release.
        accelerator: ``cpu`` or ``cuda``.
        distribution: The package that brings vLLM.
        python: Oldest Python that can make the environment, such as ``3.11``.
        torch: The requirement installed first.
        lock: File of all requirements.
        fixes: Fix id to whether it shall be in; fixes not named stay as released.
        env: Environment variables of the engine's processes.
        flags: Arguments of the engine's server.
        home: The checkout that all paths belong to.
        newest_python: Newest Python that can make the environment; any when ``None``.
        variant_of: The build that this one is with other fixes; empty when it is none's. They have
            one environment, and in a session one engine as far as the fixes allow.
    """

    name: str
    release: str
    accelerator: str
    distribution: str
    python: str
    torch: str
    lock: Path
    fixes: Mapping[str, bool]
    env: Mapping[str, str]
    flags: Mapping[str, str]
    home: Path
    newest_python: str | None = None
    variant_of: str = ""

    @property
    def environment(self) -> Path:
        """The folder of the build's environment, whether it exists or not."""
        return self.home / ".engines" / (self.variant_of or self.name)

    @property
    def interpreter(self) -> Path:
        """The environment's Python."""
        return self.environment / "bin" / "python"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A build as asked for on the command line.

    Attributes:
        label: Name and switches, switches in the order of the known fixes and faults and each once,
            so that two spellings of one request are equal.
        spec: The named build, or the one that it is a variant of.
        switches: Fix id to whether it shall be in: the build's own, then the variant's, then the
            label's; a fix made of parts is named by these. Fixes not named stay as released.
        planted: Faults to put in.
    """

    label: str
    spec: BuildSpec
    switches: Mapping[str, bool]
    planted: tuple[str, ...] = ()


def home() -> Path:
    """Find the checkout: the folder that holds ``engine/builds.toml``.

    It is what ``HYBRIDWATCH_HOME`` names, or else the nearest such folder from the working
    directory upwards, or else the checkout this module lies in.

    Raises:
        BuildError: There is none.
    """
    named = os.environ.get(HOME_VARIABLE)
    if named:
        if not (Path(named) / _BUILDS_FILE).is_file():
            raise BuildError(f"{HOME_VARIABLE}: expected a folder with {_BUILDS_FILE}, got {named}")
        return Path(named).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents, _OWN_CHECKOUT):
        if (folder / _BUILDS_FILE).is_file():
            return folder
    raise BuildError(
        f"{_BUILDS_FILE} was not found from {here} upwards; "
        f"run inside a checkout of hybridwatch or set {HOME_VARIABLE}"
    )


def load_builds(root: Path | None = None) -> dict[str, BuildSpec]:
    """Read every named build.

    Args:
        root: The checkout; found by ``home`` when not given.

    Returns:
        Builds by name, in the order of the file.

    Raises:
        BuildError: The file cannot be read, was cut short, or says something we do not understand;
            one line per wrong key.
    """
    checkout = root or home()
    path = checkout / _BUILDS_FILE
    with refusing_toml(path, _File, BuildError, _BUILDS_FILE):
        text = path.read_text(encoding="utf-8")
        _check_ended(text)
        content = tomllib.loads(text)
        _check_last_line(text, content)
        parsed = _File.model_validate(_completed(content))
    return {
        name: _spec(name, entry, checkout, _variant_of(content["builds"][name]))
        for name, entry in parsed.builds.items()
    }


def _check_ended(text: str) -> None:
    if not text.endswith("\n"):
        raise BuildError(
            f"{_BUILDS_FILE}: expected a line end as its last character, found none: the file may "
            "have been cut short; if not, end its last line"
        )


def _check_last_line(text: str, content: Mapping[str, Any]) -> None:
    """Check that the file goes on to where it says: a part of it is a file, too, of fewer builds.

    A file that says nothing about it can be cut between two lines and nobody knows.
    """
    expected, found = content.get(_LAST_LINE), text.rstrip("\n").rpartition("\n")[2]
    if expected is not None and found != expected:
        raise BuildError(
            f"{_BUILDS_FILE}: {_LAST_LINE}: expected {quoted(str(expected))} at the end of the "
            f"file, found {quoted(found)}: it was cut short, or something was added below that line"
        )


def named_build(name: str, root: Path | None = None) -> BuildSpec:
    """Find one build by its name.

    Raises:
        BuildError: No build has this name; the message names the known ones.
    """
    builds = load_builds(root)
    if name not in builds:
        hint = _hint(name, tuple(builds))
        raise BuildError(f"{quoted(name)} is no engine build of {_BUILDS_FILE}; {hint}")
    return builds[name]


def parse_label(text: str, root: Path | None = None) -> BuildRequest:
    """Read a label such as ``cpu-0.27.1~padded-rows-prefilling+single-token-extend``.

    Args:
        text: A build's name, then any number of ``~fix`` (take out), ``+fix`` (put in) and
            ``+fault`` (plant).
        root: The checkout; found by ``home`` when not given.

    Raises:
        BuildError: The build, a fix or a fault is unknown or named twice, or a fault is taken out.
    """
    name, switched = _split(text)
    named = named_build(name, root)
    spec = named_build(named.variant_of, root) if named.variant_of else named
    label = name + "".join(
        f"{'+' if switched[word] else '~'}{word}" for word in _WORDS if word in switched
    )
    fixes = {fix: wanted for fix, wanted in switched.items() if fix in FIXES}
    planted = tuple(fault for fault in FAULTS if fault in switched)
    switches = {**_of_parts(spec.fixes), **_of_parts(named.fixes), **_of_parts(fixes)}
    return BuildRequest(label, spec, switches, planted)


def _of_parts(switched: Mapping[str, bool]) -> dict[str, bool]:
    """Apply the settings of the whole to each part; a part's own settings win."""
    wholes = {part: wanted for fix, wanted in switched.items() for part in FIX_PARTS.get(fix, ())}
    return wholes | {fix: wanted for fix, wanted in switched.items() if fix not in FIX_PARTS}


def _split(text: str) -> tuple[str, dict[str, bool]]:
    start = min((text.find(mark) for mark in "~+" if mark in text), default=len(text))
    switched: dict[str, bool] = {}
    for mark, word in _SWITCH.findall(text[start:]):
        if word not in _WORDS:
            raise BuildError(f"{text}: {quoted(word)} is no fix; {_hint(word, _WORDS)}")
        if word in switched:
            raise BuildError(f"{text}: {word} is switched twice")
        if word in FAULTS and mark == "~":
            raise BuildError(f"{text}: no release has the fault {word}; +{word} plants it")
        switched[word] = mark == "+"
    return text[:start], switched


def _completed(content: dict[str, Any]) -> dict[str, Any]:
    """Give every build that is ``like`` another what it does not say itself."""
    builds = content.get("builds")
    if not isinstance(builds, dict):
        return content
    return {**content, "builds": {name: _switched(name, _filled(name, builds)) for name in builds}}


def _filled(name: str, builds: dict[str, Any]) -> Any:
    own = builds[name]
    if not isinstance(own, dict) or "like" not in own:
        return own
    model = builds.get(own["like"]) if isinstance(own["like"], str) else None
    if not isinstance(model, dict) or "like" in model:
        raise BuildError(
            f"{_BUILDS_FILE}: builds.{quoted(name)}.like: expected a build that says everything "
            f"itself, found {quoted(own['like'])}"
        )
    return {**model, **{key: value for key, value in own.items() if key != "like"}}


def _switched(name: str, entry: Any) -> Any:
    """Say in full what a build that is ``patched`` or ``reverted`` switches."""
    kind = entry.get("fixes") if isinstance(entry, dict) else None
    if not isinstance(kind, str):
        return entry
    if kind not in _KINDS:
        raise BuildError(
            f"{_BUILDS_FILE}: builds.{quoted(name)}.fixes: expected a table, "
            f"{' or '.join(map(quoted, _KINDS))}, found {quoted(kind)}"
        )
    release = entry.get("release")
    if unsaid := unprobed(release):
        raise BuildError(
            f"{_BUILDS_FILE}: builds.{quoted(name)}.fixes: {kind}: expected a release of which "
            f"engine/fixes.toml says what fixes it has, found {quoted(release)}, which is unknown "
            f"to {', '.join(unsaid)}; python locks/fixes.py {release} asks its wheel"
        )
    switched = variant_fixes(release, str(entry.get("accelerator")), kind)
    return {**entry, "fixes": dict.fromkeys(switched, _KINDS[kind])}


def _variant_of(entry: dict[str, Any]) -> str:
    """The build that an entry says no more about than which fixes are switched on it."""
    return entry["like"] if set(entry) == _OF_A_VARIANT else ""


def _hint(word: str, known: tuple[str, ...]) -> str:
    """Near matches, and always everything known: there are few."""
    everything = f"known: {', '.join(known) if known else 'none'}"
    near = closest(word, known)
    return everything if near == everything else f"{near} ({everything})"


def _spec(name: str, entry: _Entry, checkout: Path, variant_of: str) -> BuildSpec:
    if not _NAME.fullmatch(name):
        raise BuildError(
            f"{_BUILDS_FILE}: builds.{quoted(name)}: expected lower-case letters, digits, dots "
            "and hyphens as name"
        )
    lock = checkout / "engine" / entry.lock
    if not lock.is_file():
        raise BuildError(f"{_BUILDS_FILE}: builds.{quoted(name)}.lock: no file {entry.lock}")
    fields: dict[str, Any] = entry.model_dump()
    fixes = {fix: switch == "apply" for fix, switch in entry.fixes.items()}
    known = {"name": name, "lock": lock, "fixes": fixes, "home": checkout}
    return BuildSpec(**{**fields, **known, "variant_of": variant_of})
