"""A limit for work on an engine that may never answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hybridwatch.measurement.live_engine import LiveEngine


@contextmanager
def ended_after(engine: LiveEngine, limit_s: float | None) -> Iterator[threading.Event]:
    """End an engine that is not done in time; the event then is set."""
    expired = threading.Event()

    def end() -> None:
        expired.set()
        for server in engine.server.servers:
            server.stop()

    timer = threading.Timer(limit_s, end) if limit_s is not None else None
    if timer is not None:
        timer.start()
    try:
        yield expired
    finally:
        if timer is not None:
            timer.cancel()
            if expired.is_set():
                timer.join()
