"""The harness's end of ``/collective_rpc``: switches and counts on a live engine."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from hybridwatch.engines.server import EngineServer, Server, open_http
from hybridwatch.errors import BuildError, MeasurementError
from hybridwatch.records.identity import FixState

UNSUPPORTED: Final = "unsupported"
"""Key of what a probe could not watch, in its answer: name of each count, with the reason."""

_TIMEOUT_S: Final = 30.0
_DRAIN_S: Final = 20.0
_TRANSFERS_S: Final = 5.0
_POLL_S: Final = 0.02
_STEP_POLL_S: Final = 0.002


class EngineControl:
    """Speaks to the plugin in every worker of a running engine."""

    def __init__(self, servers: Sequence[EngineServer]) -> None:
        self._lines = [_ControlLine(server) for server in servers]
        self._counts_steps = False

    def close(self) -> None:
        """Close the connections."""
        for line in self._lines:
            line.close()

    def identity(self) -> dict[str, Any]:
        """Distribution, release, wheel digest, fixes and planted faults, from the engine itself."""
        first, *others = self._call("identity")
        if any(other != first for other in others):
            raise self._lines[0].server.error("the engine's workers are not all the same")
        return first

    def switch(self, fixes: Mapping[str, bool]) -> None:
        """Turn fixes on or off on the live engine."""
        for fix_id, wanted in fixes.items():
            self._change("switch", fix_id, wanted)
        self.identity()  # the same in all workers

    def plant(self, faults: Collection[str]) -> None:
        """Have these faults in the live engine from now on, and no others."""
        self._change("plant", sorted(faults))

    def mutate(self, mutant: str | None) -> None:
        """Have this mutant on in the live engine from now on, and no other; None for none."""
        self._change("mutate", mutant)

    def _change(self, method: str, *arguments: object) -> None:
        """Change every worker, or say why the plugin does not: unknown, or not in this release."""
        for answer in self._call(method, *arguments):
            if "error" in answer:
                raise BuildError(answer["error"])

    def mutant_counts(self) -> dict[str, int]:
        """How often the code of the mutant that is on ran, and changed something, since then."""
        answers = self._call("mutant_counts")
        return {key: sum(answer[key] for answer in answers) for key in ("reached", "changed")}

    def start_probe(self, name: str) -> None:
        """Let a probe count from zero."""
        self._call("probe_start", name)

    def stop_probe(self, name: str) -> dict[str, Any]:
        """Stop a probe and hand out what all workers saw: counts added, by name, and lists joined.

        What not every worker could watch is under ``unsupported``, with the reason, and left out.
        """
        replies = self._call("probe_stop", name)
        unsupported: dict[str, str] = {}
        for one in reversed(replies):
            unsupported |= one.get(UNSUPPORTED, {})
        first, *others = (
            {key: seen for key, seen in one.items() if key not in {UNSUPPORTED, *unsupported}}
            for one in replies
        )
        for other in others:
            first = {key: _together(value, other[key]) for key, value in first.items()}
        return {**first, UNSUPPORTED: unsupported} if unsupported else first

    def run_eagerly(self, *, wanted: bool) -> None:
        """Run without graphs from now on, or with them again."""
        self._call("eager", wanted)

    def speculate(self, *, wanted: bool) -> None:
        """Let drafts reach the scheduler from now on, or none."""
        self._call("speculate", wanted)

    def set_idle_batches(self, batches: int) -> None:
        """Let the engine run this many dummy batches whenever it has become idle."""
        self._call("idle_batches", batches)

    def hold(self) -> None:
        """Stop scheduling; what is requested from now on waits for ``release``."""
        for line in self._lines:
            # Left to itself, a pause also empties the prefix cache, whatever its mode.
            line.post("/pause?mode=keep&clear_cache=false")

    def release(self) -> None:
        """Schedule again: what waited is seen by one and the same step."""
        if self._counts_steps:
            self._call("remove_steps")
            self._counts_steps = False
        for line in self._lines:
            line.post("/resume")

    def run_steps(self, steps: int) -> int:
        """Let a held engine make so many steps that compute a token, or all that are left."""
        self._counts_steps = True
        state = self._steps("open_steps", steps)
        deadline = time.monotonic() + _DRAIN_S
        made = 0
        while state["left"]:
            if state["made"] > made:  # slow is not stuck
                made, deadline = state["made"], time.monotonic() + _DRAIN_S
            if time.monotonic() > deadline:
                raise self._lines[0].server.error(
                    f"no step was made for {_DRAIN_S:.0f} s, with {state['requests']} requests in "
                    f"the scheduler: expected {steps} steps, found {state['made']}"
                )
            time.sleep(_STEP_POLL_S)
            state = self._steps("steps")
        return state["made"]

    def requests(self) -> int:
        """How many requests the scheduler has, running or waiting; also while it is held."""
        return self._steps("steps")["requests"]

    def set_token_budget(self, tokens: int | None) -> None:
        """Let a step compute at most so many tokens, as started (``None``) or fewer."""
        for answer in self._call("token_budget", tokens):
            if tokens is not None and answer["tokens"] != tokens:
                raise self._lines[0].server.error(
                    f"a step cannot compute {tokens} tokens: the engine was started with "
                    f"max_num_batched_tokens {answer['tokens']}"
                )

    def drain(self) -> None:
        """Wait until no request is left in any batch."""
        self._wait_until_empty("running")

    def await_transfers(self) -> None:
        """Wait a while until no request is known; blocks of one that stays are found by a count."""
        deadline = time.monotonic() + _TRANSFERS_S
        while any(one["requests"] for one in self._call("losses")) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def count_lost(self) -> int:
        """Count the blocks and states of requests that an engine at rest will never use again."""
        return sum(one["lost"] for one in self._call("losses"))

    def read_capacity(self) -> dict[str, int]:
        """Ask what the cache holds and can hold: blocks, tokens and bytes, of several added up."""
        found = Counter[str]()
        for one in self._call("capacity"):
            if "error" in one:
                raise MeasurementError(f"the engine does not tell its cache: {one['error']}")
            found.update(one)
        return dict(found)

    def read_start(self) -> dict[str, float]:
        """Ask how long the phases of the start took, in seconds; of several workers the slowest."""
        workers = self._call("start_times")
        phases = dict.fromkeys(phase for seconds in workers for phase in seconds)
        return {phase: max(seconds.get(phase, 0.0) for seconds in workers) for phase in phases}

    def find_grammar_breaks(
        self, answers: Sequence[tuple[Mapping[str, Any], Sequence[int], int]]
    ) -> list[int | None]:
        """Find the token at which each answer leaves its grammar; None where it obeys.

        An answer is its ``structured_outputs``, its token ids, and the length at which it is cut.
        """
        found = self._call("grammar_breaks", answers)[0]
        if "error" in found:
            raise MeasurementError(f"the engine does not read grammars: {found['error']}")
        return list(found["breaks"])

    def trim(self) -> None:
        """Have the engine give memory that it has freed back to the system, as far as it can."""
        self._call("trim")

    def reset(self) -> None:
        """Bring the engine to the state of a fresh one: drained, nothing cached, no stale rows."""
        self._wait_until_empty("clear_rows")
        for line in self._lines:
            line.post("/reset_prefix_cache?reset_external=true")  # what a connector keeps, too

    def clear_cache(self) -> None:
        """Leave nothing in the cache's memory, and its blocks in the order of a fresh engine.

        So what ran before, until it was ``reset``, decides neither unwritten states nor who gets
        which block.
        """
        self._call("clear_cache")

    def _steps(self, method: str, *arguments: object) -> dict[str, int]:
        state, *others = self._call(method, *arguments)
        if others:
            raise self._lines[0].server.error(
                f"steps are counted in one scheduler; this engine has {1 + len(others)}"
            )
        return state

    def _wait_until_empty(self, method: str) -> None:
        deadline = time.monotonic() + _DRAIN_S
        while any(answer["requests"] for answer in self._call(method)):
            if time.monotonic() > deadline:
                raise self._lines[0].server.error(
                    f"requests still ran after {_DRAIN_S:.0f} s of draining"
                )
            time.sleep(_POLL_S)

    def _call(self, method: str, *arguments: object) -> list[dict[str, Any]]:
        body = {"method": f"hybridwatch_{method}", "args": list(arguments)}
        answers = [line.post("/collective_rpc", body).json()["results"] for line in self._lines]
        return [answer or {} for workers in answers for answer in workers]


def _together(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        both = {name: _together(one[name], other[name]) for name in one.keys() & other.keys()}
        return {**one, **other, **both}
    return one + other


class _ControlLine:
    def __init__(self, server: EngineServer) -> None:
        self.server = server
        self._http = open_http(server.url, _TIMEOUT_S)

    def close(self) -> None:
        self._http.close()

    def post(self, path: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        try:
            return self._http.post(path, json=body).raise_for_status()
        except httpx.HTTPError as error:
            raise self.server.error(f"no answer from the engine to {path}: {error}") from error


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """What can be changed on a live engine; fixes that are not named stay, faults do not."""

    fixes: Mapping[str, bool]
    idle_batches: int = 0
    eager: bool = False
    speculate: bool = True
    planted: Collection[str] = ()


@dataclass(slots=True)
class LiveEngine:
    """An engine that answers, fresh until a trial; a side that names no fix has ``native`` ones.

    ``start`` has seconds by metric, what is known of its start and no trial has yet.
    """

    server: Server
    control: EngineControl
    native: Mapping[str, FixState]
    setting: EngineSetting = field(default_factory=lambda: EngineSetting({}))
    start: dict[str, float] = field(default_factory=dict)
    is_fresh: bool = True

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
