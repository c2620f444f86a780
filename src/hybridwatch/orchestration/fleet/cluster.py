"""What a fleet needs of whatever runs it: hosts, orders to them, and how those end."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from hybridwatch.orchestration.fleet.health import HealthReport
from hybridwatch.orchestration.fleet.hosts import Node


@dataclass(frozen=True, slots=True)
class JobCommand:
    """What a host is to measure, in words that need no database and no file of ours.

    Only one measurement of a ``machine`` runs at a time. ``prepare_s`` is for each of the commands
    of ``prepare``.

    Attributes:
        prepare: Commands that make the builds ready, before any clock runs; each does nothing
            where that was done.
        command: Measures, and leaves one record below the folder that takes the place of
            ``{results}`` in it.
        testbed_host: Makes the testbed in the record the host's own.
    """

    prepare: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    prepare_s: float
    measure_s: float
    machine: str
    testbed_host: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a measurement left.

    Attributes:
        record: Bytes of the record; empty when there is none.
        bulk: Those of the file next to it, if there is one.
        log: What the commands printed; the end of it when that is much.
        reason: Why there is no record.
    """

    log: bytes
    record: bytes = b""
    bulk: bytes | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A check of a host before it measures."""


Work = JobCommand | HealthCheck
Result = JobResult | HealthReport


@dataclass(frozen=True, slots=True)
class HostOrder:
    """Work for one host.

    Attributes:
        gpus: Whole GPUs that it gets.
    """

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
    """We asked for it."""


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
        """Give the hosts that are there now.

        Raises:
            FleetError: The cluster is gone.
        """

    def start(self, order: HostOrder) -> None:
        """Let a host begin; it takes one order at a time."""

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Give the orders that ended, each once; waits for one, but no longer than asked.

        Raises:
            FleetError: The cluster is gone.
        """

    def stop(self, order_id: str) -> None:
        """End an order, if it goes on; it then ends as stopped."""

    def close(self) -> None:
        """End every order, and let go of the cluster."""
