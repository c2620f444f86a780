"""Where the time of a host-sync trial's steps lies on the host."""

from dataclasses import dataclass

from hybridwatch.records.bounds import Count, Duration, Name
from hybridwatch.records.part import IfKnown, Items, RecordPart


@dataclass(frozen=True, slots=True)
class CallSite(RecordPart):
    """A place in the engine's code that read values of tensors while steps were made.

    Attributes:
        place: ``file:function:line``, the file as it is imported.
        reads: How many, over all steps of the trial; on CUDA, how many waits for the device.
        seconds: How long these took, all together.
        kind: On CUDA, what most of the waits were: ``item``, ``bool``, ``int``, ``float``,
            ``index``, ``tolist``, ``nonzero``, ``copy``, ``event``, ``stream``, ``device``,
            ``allocator`` or ``other``.
    """

    place: Name
    reads: Count
    seconds: Duration
    kind: IfKnown[Name] = None


@dataclass(frozen=True, slots=True)
class StepPhase(RecordPart):
    """A part of an engine step.

    Attributes:
        name: ``prepare``, ``metadata``, ``forward``, ``sample``, ``draft`` or ``rest``.
        seconds: Of the host, the median over the trial's steps; what other phases take inside it
            left out.
    """

    name: Name
    seconds: Duration


@dataclass(frozen=True, slots=True)
class HostWork(RecordPart):
    """Where the reads and the time of a host-sync trial's steps lie.

    Attributes:
        sites: The places with the most reads, at most 20, the most first.
        phases: In the order in which a step goes through them.
    """

    sites: Items[CallSite]
    phases: Items[StepPhase]
