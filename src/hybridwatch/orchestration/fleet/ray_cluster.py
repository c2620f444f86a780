"""Hosts that Ray knows; the only module that imports Ray, which places and watches, and no more.

A host is a node with the resource ``measurement``, of which an order takes all.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.cluster import Ended, Fate, HostOrder, Node, Result, Work
from hybridwatch.orchestration.fleet.measuring import perform

TURN: Final = "measurement"
"""Resource of a host, one of it: who has it measures."""
HOST_LABEL: Final = "host"
_OWN: Final = "ray.io/"
"""Begins labels that Ray itself gives; a node's id is among them, which changes at every start."""
_DOUBT_S: Final = 30.0
"""Ray says at once that a worker has died, and later that its host has: so long we wait."""
_LONGEST: Final = 200
"""Characters of Ray's reasons that are kept."""

_GONE: Final = (
    exceptions.NodeDiedError,
    exceptions.LocalRayletDiedError,
    exceptions.TaskUnschedulableError,
    exceptions.ObjectLostError,
    exceptions.OwnerDiedError,
)
_KILLED: Final = (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError)


class RayCluster:
    """A cluster of Ray's; its address is ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``."""

    def __init__(self, address: str, do: Callable[[Work], Result] = perform) -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            line = str(error).partition("\n")[0]
            raise FleetError(f"--address {address}: no Ray cluster can be joined: {line}") from None
        self._address = address
        self._task = ray.remote(do)
        self._ids: dict[str, str] = {}
        self._orders: dict[Any, tuple[HostOrder, str]] = {}
        """By Ray's reference, with the node: a host that comes back is another one."""
        self._stopped: set[str] = set()
        self._dead: set[str] = set()
        """Nodes of which an order said that they are gone, which Ray lists for a while still."""
        self._doubtful: list[tuple[float, str, Ended]] = []

    def nodes(self) -> Sequence[Node]:
        """Give the hosts that are there; of two of one name one has ended: neither counts yet."""
        found: dict[str, list[Any]] = {}
        for node in self._alive():
            if node["Resources"].get(TURN, 0) >= 1:
                name = node["Labels"].get(HOST_LABEL) or node["NodeManagerHostname"]
                found.setdefault(name, []).append(node)
        sure = {name: nodes[0] for name, nodes in found.items() if len(nodes) == 1}
        self._ids = {name: node["NodeID"] for name, node in sure.items()}
        return [_node(name, node) for name, node in sure.items()]

    def start(self, order: HostOrder) -> None:
        """Begin on the node that has the host's name now."""
        node = self._ids[order.host]
        where = NodeAffinitySchedulingStrategy(node, soft=False)
        task = self._task.options(
            name=order.id,
            max_retries=0,  # tries are counted by the queue
            num_cpus=0,  # the turn is what is scarce
            num_gpus=order.gpus,
            resources={TURN: 1},
            scheduling_strategy=where,
        )
        self._orders[task.remote(order.work)] = order, node

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Give what ended; of a worker that died only when it is sure that its host did not."""
        ready: list[Any] = []
        if self._orders:
            ready, _ = ray.wait(list(self._orders), num_returns=1, timeout=wait_s)
            ready, _ = ray.wait(list(self._orders), num_returns=len(self._orders), timeout=0)
        else:
            time.sleep(wait_s)
        sure: list[Ended] = []
        for reference in ready:
            order, node = self._orders.pop(reference)
            ended = self._end(order, reference)
            if ended.fate is Fate.DIED:
                self._doubtful.append((time.monotonic() + _DOUBT_S, node, ended))
                continue
            if ended.fate is Fate.HOST_GONE:
                self._dead.add(node)
            sure.append(ended)
        return sure + self._settled()

    def stop(self, order_id: str) -> None:
        """Kill its worker; what that started ends with it."""
        for reference, (order, _) in self._orders.items():
            if order.id == order_id:
                self._stopped.add(order_id)
                ray.cancel(reference, force=True)

    def close(self) -> None:
        """Leave the cluster, which ends every order of ours."""
        ray.shutdown()

    def _alive(self) -> list[Any]:
        try:
            nodes = ray.nodes()
        except (exceptions.RayError, RuntimeError, ConnectionError) as error:
            line = str(error).partition("\n")[0]
            raise FleetError(
                f"--address {self._address}: the Ray cluster is gone: {line}"
            ) from None
        return [node for node in nodes if node["Alive"] and node["NodeID"] not in self._dead]

    def _end(self, order: HostOrder, reference: Any) -> Ended:
        try:
            return Ended(order, Fate.GAVE, ray.get(reference))
        except exceptions.RayError as error:
            reason = " ".join(str(error).partition("\n")[0].split())[:_LONGEST]
            if order.id in self._stopped or isinstance(error, exceptions.TaskCancelledError):
                return Ended(order, Fate.STOPPED)
            if isinstance(error, _GONE):
                return Ended(order, Fate.HOST_GONE, reason=reason)
            if isinstance(error, (*_KILLED, exceptions.RayTaskError)):
                return Ended(order, Fate.DIED, reason=reason)
            raise FleetError(f"--address {self._address}: {reason}") from None

    def _settled(self) -> list[Ended]:
        """Say of workers that died whether their host died too, as soon as that is known."""
        if not self._doubtful:
            return []
        alive = {node["NodeID"] for node in self._alive()}
        now, settled, open_ = time.monotonic(), [], []
        for until, node, ended in self._doubtful:
            if node not in alive:
                settled.append(Ended(ended.order, Fate.HOST_GONE, reason=ended.reason))
            elif now > until:
                settled.append(ended)
            else:
                open_.append((until, node, ended))
        self._doubtful = open_
        return settled


def _node(name: str, node: Any) -> Node:
    labels = {
        key: value
        for key, value in node["Labels"].items()
        if key != HOST_LABEL and not key.startswith(_OWN)
    }
    return Node(name, labels, int(node["Resources"].get("GPU", 0)))
