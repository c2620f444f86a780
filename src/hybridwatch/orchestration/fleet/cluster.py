"""The interface of a cluster: its hosts, orders to them, and the orders' results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import Final, Protocol

from hybridwatch.orchestration.fleet.job import HostKind

SLOWER: Final = 0.04
"""A host whose calibration kernel takes this much longer than before is another machine: half of
the change that must never pass, and several times what the fastest of many repetitions scatters."""
NOISY: Final = 0.05
"""Its two like halves may differ by so much."""
REMEMBERED: Final = 20
"""Earlier checks that count; a machine that ages over months is no liar."""
_PEERS: Final = 3
"""So many hosts of a kind say how fast another one of it should be."""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Facts of a host, and seconds of the calibration kernel for two like sides, in turn."""

    facts: Mapping[str, str]
    sides: tuple[Sequence[float], Sequence[float]] = field(default=((), ()))

    @property
    def kernel_s(self) -> float | None:
        """The fastest repetition, which others disturb least."""
        every = [*self.sides[0], *self.sides[1]]
        return min(every, default=None)

    @property
    def a_a(self) -> float | None:
        """Ratio of the medians of the two sides: near 1 on a steady machine."""
        first, second = self.sides
        return median(second) / median(first) if first and second else None


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """Why a host may not measure, if so; ``again`` if one time may be chance, as no fact is."""

    reason: str = ""
    again: bool = False

    @property
    def passed(self) -> bool:
        """Whether it may measure."""
        return not self.reason


def judge_health(
    report: HealthReport, testbeds: Sequence[HostKind], own: Sequence[float], peers: Sequence[float]
) -> HealthVerdict:
    """Judge a host by kernel seconds of its own passed checks, newest last, or its ``peers``."""
    wrong = [
        f"{key}: expected {expected}, found {report.facts.get(key) or 'none'} (testbed {bed.name})"
        for bed in testbeds
        for key, expected in bed.expect.items()
        if report.facts.get(key) != expected
    ]
    if wrong:
        return HealthVerdict("; ".join(wrong))
    return _timely(report, own, peers)


def _timely(report: HealthReport, own: Sequence[float], peers: Sequence[float]) -> HealthVerdict:
    if report.kernel_s is None or report.a_a is None:
        return HealthVerdict("it timed no calibration kernel")
    if abs(report.a_a - 1) > NOISY:
        return HealthVerdict(
            f"noisy: the same work took {report.a_a - 1:+.1%} in the other half of an A/A, more "
            f"than {NOISY:.0%}",
            again=True,
        )
    past = own or (peers if len(peers) >= _PEERS else ())
    if not past:
        return HealthVerdict()
    usual = median(past[-REMEMBERED:])
    change = report.kernel_s / usual - 1
    if change > SLOWER:
        whose = "before" if own else "other hosts of its kind"
        return HealthVerdict(
            f"slower: the calibration kernel takes {change:+.1%} of {whose}, more than "
            f"{SLOWER:.0%}",
            again=True,
        )
    return HealthVerdict()


@dataclass(frozen=True, slots=True)
class Node:
    """A host as a cluster sees it; hosts of one machine share the label ``machine``."""

    name: str
    labels: Mapping[str, str]
    gpus: int = 0

    @property
    def machine(self) -> str:
        """Hosts of one machine measure in turn."""
        return self.labels.get("machine") or self.name


@dataclass(frozen=True, slots=True)
class JobCommand:
    """What a host is to measure, in words that need no database and no file of ours.

    ``prepare`` makes builds ready, by commands of at most ``prepare_s`` each. ``command`` leaves
    one record below the folder that takes the place of ``{results}``; ``testbed_host`` makes its
    testbed the host's own.
    """

    prepare: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    prepare_s: float
    measure_s: float
    machine: str
    testbed_host: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """Bytes of a record (empty without one), of its bulk file, and of the end of the log."""

    log: bytes
    record: bytes = b""
    bulk: bytes | None = None
    reason: str = ""


Work = JobCommand | None
"""A measurement, or the check of a host before it measures."""
Result = JobResult | HealthReport


@dataclass(frozen=True, slots=True)
class HostOrder:
    """Work for one host, which gets ``gpus`` whole GPUs for it."""

    id: str
    host: str
    gpus: int
    work: Work


class Fate(Enum):
    """How an order ended."""

    GAVE = "gave"
    """It has a result."""
    DIED = "died"
    """It took its worker with it; the host is there still."""
    HOST_GONE = "host gone"
    STOPPED = "stopped"
    """At our request."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an order; ``result`` only when it gave one, else ``reason``."""

    order: HostOrder
    fate: Fate
    result: Result | None = None
    reason: str = ""


class Cluster(Protocol):
    """Hosts that take orders."""

    def nodes(self) -> Sequence[Node]:
        """Give the hosts that are there now."""

    def start(self, order: HostOrder) -> None:
        """Let a host begin; it takes one order at a time."""

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Give the orders that ended, each once; waits for one, but no longer than asked."""

    def stop(self, order_id: str) -> None:
        """End an order, if it goes on; it then ends as stopped."""

    def close(self) -> None:
        """End every order, and let go of the cluster."""
