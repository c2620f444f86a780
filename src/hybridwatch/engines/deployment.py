"""How an engine is laid out: one server, or a prefill and a decode server behind a proxy."""

from pathlib import Path

from hybridwatch.engines.disaggregation import DisaggregatedServer
from hybridwatch.engines.launch import Launch
from hybridwatch.engines.server import EngineServer

Server = EngineServer | DisaggregatedServer
"""Whatever answers requests at one address; the engines behind it are its ``servers``."""


def start_server(launch: Launch, log: Path) -> Server:
    """Start what the scenario's engine arguments ask for, and wait until it is up.

    Raises:
        EngineError: It died or did not come up in time; carries the tail of its log.
    """
    if launch.engine.disaggregated:
        return DisaggregatedServer(launch, log)
    return EngineServer(launch, log)
