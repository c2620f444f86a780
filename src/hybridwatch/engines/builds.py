"""Named engine builds (``engine/builds.toml``) and the labels that switch fixes on them.

In ``cpu-0.27.1~padded-rows-prefilling`` the fix is taken out; ``+`` puts one in, plants a fault
such as ``slow-step``, or chooses the model runner: ``cpu-0.32.0+v2``. Code that is no release's is
part of the name: in ``mine@1a2b3c4d`` the digest of its Python files.
"""

import os.path
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hybridwatch.engines.builds_file import BuildEntry, BuildsFile, build_variant, read_file
from hybridwatch.errors import BuildError
from hybridwatch.scenarios.fixes import FIXES, list_parts, own_faults, own_fixes
from hybridwatch.scenarios.validation import closest, quoted
from hybridwatch.system.home import home, is_extending, shipped_engine

DEFAULT_BUILD: Final = "cpu-0.31.0"
"""What is measured when no build is named; runs everywhere."""

FAULTS: Final = (
    "slow-step",
    "slow-step-2",
    "slow-step-5",
    "slow-step-10",
    "busy-step-5",
    "busy-step-10",
    "slow-start-2",
    "host-read",
    "leaked-kib-16",
    "leaked-kib-64",
    "halved-cache",
    "unzeroed-state",
    "shifted-decay",
    "unwritten-state",
)
"""What a label may plant; the plugin says what each does (``hybridwatch_engine.planted``)."""

START_FAULTS: Final = frozenset({"slow-start-2"})
"""Those that act while an engine starts: a side with one has an engine of its own."""

RUNNERS: Final = ("v1", "v2")
"""vLLM's model runners, one of which a label may choose."""

_BUILDS_FILE: Final = Path("engine") / "builds.toml"
OWN_FILE: Final = Path(".engines") / "builds.toml"
"""Builds that were added on this machine; the file is removed with their environments."""
_WRITTEN_FILE: Final = Path("builds.toml")
"""Builds that the owner of a home has written by hand."""

CODE_MARK: Final = "@"
CODE_DIGITS: Final = 8
"""Digits of a code digest in a label: enough to distinguish the trees of one build."""

NAME: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_SWITCH = re.compile(r"([~+])([^~+]*)")


class BuildSpec(BuildEntry):
    """A named build: its table, its lock, and the ``home`` in which its environment lies.

    The build that it is with other fixes, ``variant_of``, has the same environment, and in a
    session the same engine as far as the fixes allow.
    """

    name: str
    lock_file: Path
    home: Path
    variant_of: str = ""

    @property
    def made_by(self) -> str:
        """The command that makes the environment."""
        words = [f"--{kind} {shlex.quote(place)}" for kind, place in self.origin.items()]
        if not words:
            return f"hybridwatch engine install {self.name}"
        base = [f"--base {self.base}"] if self.base else []
        return " ".join(["hybridwatch engine add", self.name, *words, *base])

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
    """A build as the command line names it.

    Attributes:
        label: Name and switches, the model runner first, then in the order of the known fixes and
            faults, each once, so that two spellings of one request are equal.
        spec: The named build, or the one that it is a variant of.
        switches: Fix id to whether it shall be in: the build's own, then the variant's, then the
            label's; a fix made of parts is named by these. Fixes not named stay as released.
        code: What the digest of the Python files must begin with; empty when any will do.
        line: The line of builds that it is stated to belong to.
        model_runner: ``v1`` or ``v2``; ``None`` leaves it to the scenario and the release.
    """

    label: str
    spec: BuildSpec
    switches: Mapping[str, bool]
    planted: tuple[str, ...] = ()
    code: str = ""
    line: str | None = None
    model_runner: str | None = None

    @property
    def engine_name(self) -> str:
        """The build's name, with the model runner that was chosen."""
        return f"{self.spec.name}+{self.model_runner}" if self.model_runner else self.spec.name

    def build_label(self, code_digest: str | None, *, changed: bool) -> str:
        """Give the label under which an engine of this build is recorded.

        Only a release goes by the name alone. Other code (``changed``, where files differ from the
        wheel's list), and all of an added build, has its digest in the label: it never shares a
        series with the release, nor with what the tree is after an edit. An engine without a digest
        keeps the label.
        """
        if code_digest is None:
            return self.label
        if not code_digest.startswith(self.code):
            raise BuildError(
                f"{self.label}: expected the code {self.code}, found {code_digest[:CODE_DIGITS]}: "
                "the tree was edited since"
            )
        if self.code or not (changed or self.spec.origin):
            return self.label
        name = re.split(r"[~+]", self.label, maxsplit=1)[0]
        return f"{name}{CODE_MARK}{code_digest[:CODE_DIGITS]}{self.label.removeprefix(name)}"


def on_line(sides: Sequence[BuildRequest], line: str | None) -> tuple[BuildRequest, ...]:
    """State the line of the contender, the last of some builds; of the others only as its own."""
    name = sides[-1].spec.name
    return tuple(replace(one, line=line) if one.spec.name == name else one for one in sides)


def load_builds(root: Path | None = None) -> dict[str, BuildSpec]:
    """Read every named build, in the order of the files; those added on this machine last."""
    folder = root or home()
    engine = shipped_engine(folder)
    places = build_files(folder)
    files: list[BuildsFile] = []
    for shown, path in places.items():
        files.append(read_file(path, shown, files))
    return {
        name: _spec(name, file, (places[file.shown].parent, engine), folder)
        for file in files
        for name in file.entries
    }


def build_files(folder: Path) -> dict[Path, Path]:
    """Give the files of builds of a home, what is shipped first, by what messages call them."""
    own = [_WRITTEN_FILE, OWN_FILE] if is_extending(folder) else [OWN_FILE]
    found = {one: folder / one for one in own if (folder / one).exists()}
    return {_BUILDS_FILE: shipped_engine(folder) / _BUILDS_FILE.name, **found}


def named_build(name: str, root: Path | None = None) -> BuildSpec:
    """Find one build by its name."""
    builds = load_builds(root)
    if name not in builds:
        hint = _hint(name, tuple(builds))
        raise BuildError(f"{quoted(name)} is no engine build of {_BUILDS_FILE}; {hint}")
    return builds[name]


def parse_label(text: str, root: Path | None = None) -> BuildRequest:
    """Read a label such as ``cpu-0.27.1~padded-rows-prefilling+single-token-extend``.

    A record's has ``@`` and the beginning of its code digest behind the build's name. ``~fix``
    takes out, ``+fix`` puts in, ``+fault`` plants, ``+v1`` or ``+v2`` chooses the model runner.
    """
    whole, switched, words = _split(text)
    name, mark, code = whole.partition(CODE_MARK)
    if mark and not re.fullmatch(f"[0-9a-f]{{{CODE_DIGITS},64}}", code):
        raise BuildError(
            f"{text}: expected {CODE_DIGITS} or more digits of a code digest after {CODE_MARK}, "
            f"found {quoted(code)}"
        )
    named = named_build(name, root)
    spec = named_build(named.variant_of, root) if named.variant_of else named
    label = whole + "".join(
        f"{'+' if switched[word] else '~'}{word}" for word in words.all if word in switched
    )
    fixes = {fix: switched[fix] for fix in words.fixes if fix in switched}
    planted = tuple(fault for fault in words.faults if fault in switched)
    switches = {**_of_parts(spec.switches), **_of_parts(named.switches), **_of_parts(fixes)}
    runner = next((runner for runner in RUNNERS if runner in switched), None)
    return BuildRequest(label, spec, switches, planted, code, model_runner=runner)


def _of_parts(switched: Mapping[str, bool]) -> dict[str, bool]:
    """Apply the settings of the whole to each part; a part's own settings win."""
    parts = {fix: list_parts(fix) for fix in switched}
    wholes = {part: wanted for fix, wanted in switched.items() for part in parts[fix]}
    return wholes | {fix: wanted for fix, wanted in switched.items() if parts[fix] == (fix,)}


@dataclass(frozen=True, slots=True)
class LabelNames:
    """The names that a label may switch, plant and choose, in the order of labels."""

    fixes: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def added(self) -> tuple[str, ...]:
        """Names that are off in every release, so that only ``+`` can stand before them."""
        return (*RUNNERS, *self.faults)

    @property
    def all(self) -> tuple[str, ...]:
        """All names."""
        return (*RUNNERS, *self.fixes, *self.faults)


SHIPPED_NAMES: Final = LabelNames(FIXES, FAULTS)
"""The shipped names, known without a home."""


def _split(text: str) -> tuple[str, dict[str, bool], LabelNames]:
    """Split a label into the build's name and the switches; also return all known names."""
    start = min((text.find(mark) for mark in "~+" if mark in text), default=len(text))
    switched: dict[str, bool] = {}
    found = _SWITCH.findall(text[start:])
    names = (
        SHIPPED_NAMES if all(name in SHIPPED_NAMES.all for _, name in found) else load_label_names()
    )
    for mark, name in found:
        if name not in names.all:
            raise BuildError(f"{text}: {quoted(name)} is no fix; {_hint(name, names.all)}")
        if name in switched:
            raise BuildError(f"{text}: {name} is switched twice")
        if name in names.faults and mark == "~":
            raise BuildError(f"{text}: no release has the fault {name}; +{name} plants it")
        if name in RUNNERS and (mark == "~" or set(RUNNERS) & switched.keys()):
            raise BuildError(f"{text}: expected one of +v1 and +v2, found {mark}{name}")
        switched[name] = mark == "+"
    return text[:start], switched, names


def load_label_names() -> LabelNames:
    """Load the names that a label may have, the user's own fixes and faults included."""
    fixes, faults = own_fixes(), own_faults()
    for fix in fixes.keys() & {*FAULTS, *RUNNERS}:
        raise BuildError(
            f"fix.{fix}: expected an id that is not taken yet, found that of a planted fault that "
            "is shipped, or of a model runner"
        )
    for name in faults.keys() & {*SHIPPED_NAMES.all, *fixes}:
        raise BuildError(
            f"{faults[name].file}: mutant.{name}: expected a name that is not taken yet, found "
            "that of a fix or of a planted fault that is shipped"
        )
    # The worker plants; what the scheduler runs may be in another process.
    planted = sorted(name for name, one in faults.items() if one.mutant.process == "worker")
    return LabelNames((*FIXES, *fixes), (*FAULTS, *planted))


def _hint(name: str, known: tuple[str, ...]) -> str:
    """Near matches, and always everything known: there are few."""
    everything = f"known: {', '.join(known) if known else 'none'}"
    near = closest(name, known)
    return everything if near == everything else f"{near} ({everything})"


def _spec(name: str, file: BuildsFile, locks: Sequence[Path], folder: Path) -> BuildSpec:
    key, entry = f"{file.shown}: builds.{quoted(name)}", file.entries[name]
    if not NAME.fullmatch(name):
        raise BuildError(f"{key}: expected lower-case letters, digits, dots and hyphens as name")
    return BuildSpec(
        **entry.model_dump(),
        name=name,
        lock_file=_lock(key, entry.lock, locks),
        home=folder,
        variant_of=build_variant(file.tables[name]),
    )


def _lock(key: str, name: str, folders: Sequence[Path]) -> Path:
    """Find a lock next to the file that names it, or next to that of the build it is like."""
    for folder in folders:
        # Not every home has the folder that a path such as ../.engines/x leaves again.
        path = Path(os.path.normpath(folder / name))
        if path.is_file():
            return path
    raise BuildError(f"{key}.lock: no file {name}")
