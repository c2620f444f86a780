"""An engine that is up, what can be changed on it between trials, and a limit to its time."""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from hybridwatch.engines.control import EngineControl
from hybridwatch.engines.server import Server
from hybridwatch.records.identity import FixState


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """What can be changed on a live engine.

    Attributes:
        fixes: Fix id to whether it shall be in; others stay as they are.
        idle_batches: Dummy batches whenever the engine becomes idle.
        planted: Faults that are in; no others.
    """

    fixes: Mapping[str, bool]
    idle_batches: int = 0
    eager: bool = False
    speculate: bool = True
    planted: Collection[str] = ()


@dataclass(slots=True)
class LiveEngine:
    """An engine that answers, with its control channel.

    Attributes:
        native: State of each fix when it came up; what a side that names no fix gets.
        setting: What was last set.
    """

    server: Server
    control: EngineControl
    native: Mapping[str, FixState]
    setting: EngineSetting = field(default_factory=lambda: EngineSetting({}))

    def settle(self, setting: EngineSetting) -> None:
        """Set what can be set, with nothing left of what ran before."""
        # Idle batches first: the reset below must not be followed by any on the old rows.
        self.control.set_idle_batches(0)
        self.control.reset()
        self.control.switch(setting.fixes)
        self.control.plant(setting.planted)
        self.control.run_eagerly(wanted=setting.eager)
        if self.server.launch.engine.speculation is not None:
            self.control.speculate(wanted=setting.speculate)
        self.control.set_idle_batches(setting.idle_batches)
        self.setting = setting

    def stop(self) -> None:
        """End it."""
        self.control.close()
        self.server.stop()


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
