"""The engines of a session: one per named build, kept alive, switched between trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from hybridwatch.engine.builds import BuildRequest
from hybridwatch.engine.control import EngineControl
from hybridwatch.engine.deployment import Server, start_server
from hybridwatch.engine.install import lock_digest
from hybridwatch.engine.load_client import LoadClient
from hybridwatch.engine.server import Launch
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.record.identity import EngineBuild, FixState
from hybridwatch.scenario.scenario import FIX_PARTS, Scenario

MAX_STARTS: Final = 3
"""Starts of one engine in one session; one that keeps dying makes failed trials, not a loop."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What can be changed on a live engine.

    Attributes:
        fixes: Fix id to whether it shall be in; others stay as they are.
        idle_batches: Dummy batches whenever the engine becomes idle.
        eager: Without graphs.
    """

    fixes: Mapping[str, bool]
    idle_batches: int = 0
    eager: bool = False


@dataclass(slots=True)
class LiveEngine:
    """An engine that answers, with its control channel.

    Attributes:
        server: The process.
        control: Talks to the plugin.
        native: Which fixes were in when it came up; what a side that names no fix gets.
        setting: What was last set.
    """

    server: Server
    control: EngineControl
    native: Mapping[str, bool]
    setting: Setting = field(default_factory=lambda: Setting({}))

    def settle(self, setting: Setting) -> None:
        """Set what can be set, with nothing left of what ran before.

        Raises:
            BuildError: The release cannot be switched as asked.
            EngineError: The engine is gone or does not come to rest.
        """
        # Idle batches first: the reset below must not be followed by any on the old rows.
        self.control.set_idle_batches(0)
        self.control.reset()
        self.control.switch(setting.fixes)
        self.control.run_eagerly(wanted=setting.eager)
        self.control.set_idle_batches(setting.idle_batches)
        self.setting = setting

    def stop(self) -> None:
        """End it."""
        self.control.close()
        self.server.stop()


@dataclass(slots=True)
class _Slot:
    """The place of one engine: how to start it, and whether it is there."""

    launch: Launch
    client: LoadClient
    engine: LiveEngine | None = None
    starts: int = 0


@dataclass(slots=True)
class Bench:
    """Engines and load clients for the sides of a session; a context manager.

    Sides of one named build share one live engine and differ by the fixes switched on it, so both
    run in the same process and memory, seconds apart. Other sides have an engine each.

    Attributes:
        scenario: What is run.
        sides: The builds, baseline first.
        models: Folder of the models.
        work: Folder for logs.
        say: Told in one line what is going on.
    """

    scenario: Scenario
    sides: Sequence[BuildRequest]
    models: Path
    work: Path
    say: Callable[[str], None]
    _slots: dict[str, _Slot] = field(default_factory=dict)

    def __enter__(self) -> Self:
        try:
            for side in self.sides:
                if side.spec.name not in self._slots:
                    self._slots[side.spec.name] = self._make_slot(side)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every engine and client."""
        for slot in self._slots.values():
            if slot.engine is not None:
                slot.engine.stop()
            slot.client.stop()
        self._slots.clear()

    def _make_slot(self, side: BuildRequest) -> _Slot:
        spec = side.spec
        model = self.models / self.scenario.model
        if not model.is_dir():
            raise BuildError(
                f"{self.scenario.id}: model {self.scenario.model!r}: expected a folder in "
                f"{self.models}; models of the hub cannot be measured yet"
            )
        launch = Launch(
            python=spec.interpreter,
            model=model,
            served_name=self.scenario.model,
            engine=self.scenario.engine,
            graph_replay=spec.accelerator == "cpu",
            fixes=spec.fixes,
            environment=spec.env,
            flags=spec.flags,
        )
        return _Slot(launch, LoadClient(launch, self.work / f"{spec.name}.client.log"))

    def client(self, side: int) -> LoadClient:
        """The load client of a side."""
        return self._slots[self.sides[side].spec.name].client

    def engine(self, side: int) -> LiveEngine:
        """The live engine of a side, started when it is not there.

        Raises:
            EngineError: It does not come up, or has died too often.
        """
        name = self.sides[side].spec.name
        slot = self._slots[name]
        if slot.engine is not None and not slot.engine.server.is_well():
            self.discard(side)
        if slot.engine is None:
            if slot.starts >= MAX_STARTS:
                raise EngineError(f"engine {name} was started {slot.starts} times and died again")
            slot.starts += 1
            slot.engine = self._start(name, slot)
        return slot.engine

    def discard(self, side: int) -> None:
        """Give up the engine of a side after an error; the next trial gets a new one."""
        slot = self._slots[self.sides[side].spec.name]
        if slot.engine is not None:
            slot.engine.stop()
            slot.engine = None

    def _start(self, name: str, slot: _Slot) -> LiveEngine:
        self.say(f"starting engine {name}")
        server = start_server(slot.launch, self.work / f"{name}.{slot.starts}.log")
        control = EngineControl(server.servers)
        try:
            states = control.identity()["fixes"]
        except BaseException:
            control.close()
            server.stop()
            raise
        native = {fix: state in {"present", "applied"} for fix, state in states.items()}
        return LiveEngine(server, control, native)

    def make_ready(self, side: int) -> LiveEngine:
        """Give a side its engine: fixes as it wants them, nothing left of what ran before.

        Raises:
            BuildError: The release cannot be switched as asked.
            EngineError: The engine is gone or does not come to rest.
        """
        engine = self.engine(side)
        idle = self.scenario.workload.idle_dummy_batches
        engine.settle(Setting(self._wishes(side, engine), idle_batches=idle))
        return engine

    def reference(self, side: int) -> Setting:
        """How the engine of a side says what is right: the scenario's fix in, no graph replayed.

        No dummy batches either, but those that a data-parallel engine runs by itself.
        """
        engine = self.engine(side)
        parts = FIX_PARTS.get(self.scenario.fix, (self.scenario.fix,))
        wishes = self._wishes(side, engine)
        return Setting({fix: fix in parts or wanted for fix, wanted in wishes.items()}, eager=True)

    def _wishes(self, side: int, engine: LiveEngine) -> dict[str, bool]:
        """Every fix that any side of this engine touches, as this side wants it."""
        mine = self.sides[side]
        touched = {
            fix
            for other in self.sides
            if other.spec.name == mine.spec.name
            for fix in other.switches
        }
        return {fix: mine.switches.get(fix, engine.native[fix]) for fix in sorted(touched)}

    def identify(self, side: int) -> EngineBuild:
        """Say what a side really is, asked from its engine after switching."""
        engine = self.make_ready(side)
        request, told = self.sides[side], engine.control.identity()
        args = self.scenario.engine.model_dump(mode="json", exclude_none=True)
        flags = {key: str(value) for key, value in args.items()} | dict(request.spec.flags)
        flags["graph_replay"] = str(engine.server.launch.graph_replay)
        return EngineBuild(
            label=request.label,
            name=request.spec.name,
            release=told["release"],
            accelerator=request.spec.accelerator,
            distribution=told["distribution"],
            lock_digest=lock_digest(request.spec),
            wheel_digest=told["wheel_digest"],
            fixes={fix: FixState(state) for fix, state in told["fixes"].items()},
            flags=flags,
        )
