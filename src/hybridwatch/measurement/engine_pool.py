"""The engines of a session: one per named build, kept alive, switched between trials."""

import json
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from hybridwatch.engines.builds import START_FAULTS, BuildRequest
from hybridwatch.engines.check import check_build
from hybridwatch.engines.control import EngineControl, EngineSetting, LiveEngine
from hybridwatch.engines.fitting import (
    Arrangement,
    arrange,
    find_adapters,
    find_checkpoint,
    find_draft,
    on_usual_runner,
)
from hybridwatch.engines.install import lock_digest
from hybridwatch.engines.launch import Launch, own_settings
from hybridwatch.engines.load_client import LoadClient
from hybridwatch.engines.other_python import unspaced_interpreter
from hybridwatch.engines.server import EngineServer, Server, start_server, wait_until_up
from hybridwatch.errors import EngineError
from hybridwatch.measurement.accuracy.harness import LmEval
from hybridwatch.metrics import START_TIME
from hybridwatch.records.identity import EngineBuild, FixState
from hybridwatch.records.readings import CLOCK_DIGITS
from hybridwatch.scenarios.fixes import NO_FIX, list_parts, start_fixes
from hybridwatch.scenarios.scenario import Scenario

MAX_STARTS: Final = 3
"""Starts of one engine in one session; one that keeps dying makes failed trials, not a loop. Where
dying is what a scenario looks for, each trial has its own start."""

_DRAWS: Final = 2**31
_IN: Final = frozenset({FixState.PRESENT, FixState.APPLIED})


@dataclass(slots=True)
class _Slot:
    """An engine's place; the one ``coming`` was started and has not answered yet."""

    launch: Launch
    client: LoadClient
    revision: str | None = None
    engine: LiveEngine | None = None
    coming: EngineServer | None = None
    starts: int = 0


@dataclass(slots=True)
class EnginePool:
    """Engines and load clients for the sides of a session; a context manager.

    Sides of one named build share one live engine and differ by the fixes switched on it, so both
    run in the same process and memory, seconds apart. Sides of other builds have an engine each,
    and so have sides that differ in a fix or a fault which acts while the engine starts.

    Attributes:
        sides: The builds, baseline first.
        gpus: Those that engines may use, as CUDA numbers them; none where all compute on a CPU.
        shared: Asks the documents of accuracy trials, here and elsewhere; None for one of its own.
        apart: Whether each side has an engine of its own even for the same build.
        plugin_settings: More settings of the plugin: lists of folders by key.
    """

    scenario: Scenario
    sides: Sequence[BuildRequest]
    models: Path
    work: Path
    say: Callable[[str], None]
    gpus: Sequence[str] = ()
    shared: LmEval | None = None
    apart: bool = False
    plugin_settings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lm_eval: LmEval = field(init=False)
    _arrangement: Arrangement = field(init=False)
    _slots: dict[str, _Slot] = field(default_factory=dict)
    _first_draw: int = field(init=False)

    def __post_init__(self) -> None:
        """Lay the scenario out; from here on it is what is run, declared or standing in."""
        self.sides = [on_usual_runner(self.scenario, side) for side in self.sides]
        engines = len(self.sides) if self.apart else list_engines(self.sides)
        self._arrangement = arrange(self.scenario, self.gpus, engines)
        self.scenario = self._arrangement.scenario
        self.lm_eval = self.shared or LmEval(self.work)
        # Sessions of one block draw again, too: else the same builds met by the same chance.
        self._first_draw = 1 + secrets.randbelow(_DRAWS)

    def __enter__(self) -> Self:
        with ExitStack() as on_error:
            on_error.callback(self.close)
            for side in range(len(self.sides)):
                if self._place(side) not in self._slots:
                    self._slots[self._place(side)] = self._make_slot(side)
            on_error.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every engine and client."""
        if self.shared is None:
            self.lm_eval.stop()
        for slot in self._slots.values():
            if slot.engine is not None:
                slot.engine.stop()
            if slot.coming is not None:
                slot.coming.stop()
            slot.client.stop()
        self._slots.clear()

    def _place(self, side: int) -> str:
        place = _place(self.sides[side])
        return f"{place}.{side + 1}" if self.apart else place

    def _make_slot(self, number: int) -> _Slot:
        side = self.sides[number]
        spec = side.spec
        model = find_checkpoint(self.scenario, spec, self.models)
        engine = self.scenario.engine
        if side.model_runner is not None:
            engine = engine.model_copy(update={"model_runner": side.model_runner})
        launch = Launch(
            python=unspaced_interpreter(spec, self.work),
            model=model.folder,
            served_name=self.scenario.model,
            engine=engine,
            graph_replay=spec.accelerator == "cpu",
            fixes=spec.switches | _at_start(side),
            environment=spec.env,
            flags=spec.flags,
            accelerator=spec.accelerator,
            tokenizer=model.tokenizer,
            draft=find_draft(self.scenario, self.models),
            adapters=find_adapters(self.scenario, self.models),
            own={**own_settings(), **self.plugin_settings},
            planted=_faults_at_start(side),
            hash_seed=self._first_draw if self.apart else None,
        )
        if spec.accelerator == "cuda":
            laid_out = self._arrangement
            launch = replace(launch, gpus=laid_out.gpus, memory_share=laid_out.memory_share)
        client = LoadClient(launch, self.work / f"{self._place(number)}.client.log")
        return _Slot(launch, client, revision=model.revision)

    def client(self, side: int) -> LoadClient:
        """The load client of a side."""
        return self._slots[self._place(side)].client

    def start_ahead(self) -> None:
        """Let the baseline's engine come up; not a pair's, whose second may have to wait."""
        name = self._place(0)
        slot = self._slots[name]
        if slot.starts == 0 and not slot.launch.engine.disaggregated:
            slot.starts += 1
            slot.coming = EngineServer(slot.launch, self._log(name, slot), wait=False)

    def engine(self, side: int) -> LiveEngine:
        """The live engine of a side, started when it is not there."""
        name = self._place(side)
        slot = self._slots[name]
        if slot.engine is not None and not slot.engine.server.is_well():
            self.discard(side)
        if slot.engine is None:
            coming, slot.coming = slot.coming, None
            begin = time.monotonic()
            try:
                server = coming or self._start(name, slot)
                seconds = round(time.monotonic() - begin, CLOCK_DIGITS)
                slot.engine = _live(server)
                if coming is None:  # else it came up while something else ran
                    slot.engine.start = {START_TIME: seconds, **slot.engine.control.read_start()}
            except EngineError as error:
                error.log = self._kept(self._log(name, slot), self.sides[side].spec.home)
                raise
        return slot.engine

    def running(self, side: int) -> LiveEngine:
        """The engine that a side was given by ``make_ready``.

        Another would not be ready within a trial, and the first one's death would be lost.
        """
        name = self._place(side)
        engine = self._slots[name].engine
        if engine is None:
            raise EngineError(f"engine {name} was not made ready")
        if not engine.server.is_well():
            raise engine.server.error(f"engine {name} ended during a trial")
        return engine

    def is_alive(self, side: int) -> bool:
        """Whether the engine of a side is there and answers."""
        engine = self._slots[self._place(side)].engine
        return engine is not None and engine.server.is_well()

    def discard(self, side: int) -> None:
        """Give up the engine of a side after an error; the next trial gets a new one."""
        slot = self._slots[self._place(side)]
        if slot.engine is not None:
            slot.engine.stop()
            slot.engine = None

    def retire(self, side: int) -> None:
        """End the engine of a side, of which the next trial is to have a new one.

        That lays out its dictionaries and sets in another way, and all sides in the same way.
        """
        self.discard(side)
        slot = self._slots[self._place(side)]
        slot.starts = 0
        slot.launch = replace(slot.launch, hash_seed=(slot.launch.hash_seed or 0) + 1)

    def renew(self) -> None:
        """End every engine and client; the next trials get new ones, with luck of their own."""
        for side in range(len(self.sides)):
            self.discard(side)
            self.client(side).stop()
            slot = self._slots[self._place(side)]
            slot.starts, slot.launch = 0, replace(slot.launch, hash_seed=None)

    def _start(self, name: str, slot: _Slot) -> Server:
        if slot.starts >= MAX_STARTS and self.scenario.harm != "death":
            raise EngineError(f"engine {name} was started {slot.starts} times and died again")
        slot.starts += 1
        self.say(f"starting engine {name}")
        return start_server(slot.launch, self._log(name, slot))

    def _log(self, name: str, slot: _Slot) -> Path:
        return self.work / f"{name}.{slot.starts}.log"

    def _kept(self, log: Path, home: Path) -> Path | None:
        """Keep the logs of an engine that did not come up, which its session takes away."""
        folder = home / ".engines" / "logs"
        for one in log.parent.glob(f"{log.stem}*"):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(one, folder)
        kept = folder / log.name
        return kept if kept.exists() else None

    def make_ready(self, side: int) -> LiveEngine:
        """Give a side its engine: fixes as it wants them, nothing left of what ran before."""
        engine = self.engine(side)
        idle = self.scenario.workload.idle_dummy_batches
        planted = self.sides[side].planted
        engine.settle(EngineSetting(self._wishes(side, engine), idle_batches=idle, planted=planted))
        return engine

    def reference(self, side: int) -> EngineSetting:
        """The engine's setting for right answers: fixed, no graph replay, drafts, dummy batches."""
        engine = self.running(side)
        right = dict.fromkeys(self._needed(engine), True)
        return EngineSetting(self._wishes(side, engine) | right, eager=True, speculate=False)

    def _needed(self, engine: LiveEngine) -> list[str]:
        """The fixes without which an engine does not say what is right."""
        fix = self.scenario.fix
        needed = {*list_parts(fix), *self.scenario.requires} - start_fixes() - {NO_FIX}
        # What means nothing to a release is not missed in it.
        lacking = FixState.NOT_APPLICABLE
        return sorted(one for one in needed if engine.native.get(one, lacking) is not lacking)

    def _wishes(self, side: int, engine: LiveEngine) -> dict[str, bool]:
        """Every fix that any side of this engine touches, or its reference, as this side wants it.

        Code that lacks a fix is to lack it again when it has said what is right.
        """
        mine, place = self.sides[side], self._place(side)
        touched = {
            fix
            for number, other in enumerate(self.sides)
            if self._place(number) == place
            for fix in other.switches
        }.union(self._needed(engine))
        return {
            fix: mine.switches.get(fix, engine.native[fix] in _IN)
            for fix in sorted(touched - start_fixes())
        }

    def identify(self, side: int) -> EngineBuild:
        """Say what a side is by its engine's report; if that cannot start, by code and request."""
        request = self.sides[side]
        try:
            facts = self.make_ready(side).control.identity()
        except EngineError:
            if not _at_start(request):
                raise
            facts = _from_code(request)
        code, changed = facts.get("code_digest"), facts.get("changed_files")
        return EngineBuild(
            label=request.build_label(code, changed=bool(changed)),
            name=request.spec.name,
            release=facts["release"],
            accelerator=request.spec.accelerator,
            distribution=facts["distribution"],
            lock_digest=lock_digest(request.spec),
            wheel_digest=facts["wheel_digest"],
            code_digest=code,
            changed_files=None if changed is None else tuple(changed),
            revision=facts.get("revision"),
            diff_digest=facts.get("diff_digest"),
            fixes={fix: FixState(state) for fix, state in facts["fixes"].items()},
            flags=self._flags(side, facts),
            line=request.line,
        )

    def _flags(self, side: int, settings: Mapping[str, Any]) -> dict[str, str]:
        slot = self._slots[self._place(side)]
        args = self.scenario.engine.model_dump(mode="json", exclude_none=True)
        flags = {key: _flag(value) for key, value in args.items()} | dict(
            self.sides[side].spec.flags
        )
        flags["graph_replay"] = str(slot.launch.graph_replay)
        on_gpu = slot.launch.accelerator == "cuda"
        chosen = self.sides[side].model_runner is not None
        facts = {
            "planted": ", ".join(settings["planted"]),
            # A label may choose it, on a GPU a build, and else the release.
            "model_runner": settings["model_runner"] if on_gpu or chosen else None,
            "model_revision": slot.revision,
            "gpu_memory_utilization": slot.launch.memory_share,
            "stand_in": self._arrangement.stand_in if slot.launch.gpus else None,
        }
        return flags | {key: _flag(value) for key, value in facts.items() if value}


def list_engines(sides: Sequence[BuildRequest]) -> int:
    """Say how many engines the sides of a session have between them."""
    return len({_place(side) for side in sides})


def _live(server: Server) -> LiveEngine:
    """Take over a server as soon as it is up, or end it."""
    with ExitStack() as on_error:
        on_error.callback(server.stop)
        wait_until_up(server.servers)
        control = EngineControl(server.servers)
        on_error.callback(control.close)
        states = control.identity()["fixes"]
        on_error.pop_all()
    native = {fix: FixState(state) for fix, state in states.items()}
    return LiveEngine(server, control, native)


def _at_start(side: BuildRequest) -> dict[str, bool]:
    at_start = start_fixes()
    return {fix: wanted for fix, wanted in side.switches.items() if fix in at_start}


def _faults_at_start(side: BuildRequest) -> tuple[str, ...]:
    return tuple(fault for fault in side.planted if fault in START_FAULTS)


def _place(side: BuildRequest) -> str:
    switches = "".join(f"{'+' if on else '~'}{fix}" for fix, on in _at_start(side).items())
    planted = "".join(f"+{fault}" for fault in _faults_at_start(side))
    return f"{side.engine_name}{switches}{planted}"


def _from_code(side: BuildRequest) -> dict[str, Any]:
    """The identity of a build whose engine cannot report it: by its source and its label."""
    found = check_build(side.spec)
    switched = {True: FixState.APPLIED, False: FixState.REVERTED}
    states = {fix: FixState(finding.state) for fix, finding in found.fixes.items()}
    changed = {
        fix: switched[wanted]
        for fix, wanted in side.switches.items()
        if wanted != (states[fix] is FixState.PRESENT)
    }
    return {**asdict(found), "fixes": states | changed, "planted": side.planted}


def _flag(value: object) -> str:
    """An engine argument as a record keeps it; tables as JSON, as vLLM takes them."""
    return json.dumps(value) if isinstance(value, dict) else str(value)
