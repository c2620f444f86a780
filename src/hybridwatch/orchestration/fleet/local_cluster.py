"""This machine as a cluster: no Ray, a thread for each order."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from hybridwatch.errors import HybridwatchError
from hybridwatch.orchestration.fleet.cluster import Ended, Fate, HostOrder, Result, Work
from hybridwatch.orchestration.fleet.hosts import Node
from hybridwatch.orchestration.fleet.measuring import perform

_PATIENCE_S: Final = 30.0

Do = Callable[[Work, Callable[[], bool]], Result]
"""Does work as long as it is wanted."""


class LocalCluster:
    """Hosts of this process: one as a rule, several in tests."""

    def __init__(self, nodes: Sequence[Node], do: Do = perform) -> None:
        self._nodes = tuple(nodes)
        self._do = do
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._unwanted: dict[str, threading.Event] = {}

    @classmethod
    def of_this_machine(cls, labels: Mapping[str, str], gpus: int) -> "LocalCluster":
        """Make one host of this machine, called as the machine is."""
        return cls([Node(socket.gethostname(), labels, gpus)])

    def nodes(self) -> Sequence[Node]:
        """Give them all."""
        return self._nodes

    def start(self, order: HostOrder) -> None:
        """Begin in a thread."""
        unwanted = self._unwanted[order.id] = threading.Event()
        arguments = order, unwanted
        threading.Thread(target=self._obey, args=arguments, name=order.id, daemon=True).start()

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Give what ended."""
        found: list[Ended] = []
        with suppress(queue.Empty):
            found.append(self._ended.get(timeout=wait_s))
            while True:
                found.append(self._ended.get_nowait())
        for one in found:
            del self._unwanted[one.order.id]
        return found

    def stop(self, order_id: str) -> None:
        """Signal its thread, which ends what it started."""
        if unwanted := self._unwanted.get(order_id):
            unwanted.set()

    def close(self) -> None:
        """Signal every thread, and wait until they have ended what they started."""
        for unwanted in self._unwanted.values():
            unwanted.set()
        deadline = time.monotonic() + _PATIENCE_S
        while self._unwanted and time.monotonic() < deadline:
            self.ended(_PATIENCE_S)

    def _obey(self, order: HostOrder, unwanted: threading.Event) -> None:
        try:
            result = self._do(order.work, lambda: not unwanted.is_set())
        except HybridwatchError as error:
            self._ended.put(Ended(order, Fate.DIED, reason=str(error)))
        except KeyboardInterrupt:  # this process is stopped: ``system.stopping``
            self._ended.put(Ended(order, Fate.STOPPED))
        else:
            fate = Fate.STOPPED if unwanted.is_set() else Fate.GAVE
            self._ended.put(Ended(order, fate, result))
