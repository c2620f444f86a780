"""A case: which requests come, at which engine step, and what becomes of them; plain data.

And what cases are made of, and how one is said in the pattern language of scenarios.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.fixes import NO_FIX
from hybridwatch.scenarios.load import table_lines, text_lines
from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.scenario import Scenario


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """One request of a phase.

    Attributes:
        at_step: Engine steps of the phase that come before it; once the engine has run out of
            requests it comes at once.
        input_tokens: Length of its prompt, shared prefix included.
        output_tokens: Length of its answer.
        shared_prefix_tokens: How much of the case's common text its prompt begins with.
        abort_step: Engine steps of the phase after which it is aborted, at least ``at_step``; None
            when it is answered. One that is done by then is not aborted.
    """

    at_step: int
    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0
    abort_step: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzPhase:
    """Requests that come one after the other; without a budget the engine's own holds."""

    requests: tuple[CaseRequest, ...]
    token_budget: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """What an engine goes through from a fresh state on.

    Attributes:
        acts: Its phases, one after the other, with the engine at rest between them.
        dummy_batches: Dummy batches each time the engine comes to rest.
    """

    acts: tuple[FuzzPhase, ...] = ()
    dummy_batches: int = 0

    @property
    def requests(self) -> tuple[CaseRequest, ...]:
        """The requests of all phases."""
        return tuple(request for phase in self.acts for request in phase.requests)

    @property
    def aborts(self) -> int:
        """How many requests are to be aborted."""
        return sum(request.abort_step is not None for request in self.requests)


def tidied(case: FuzzCase) -> FuzzCase:
    """Leave out what makes no difference: empty phases, and steps before the first request."""
    phases = tuple(_from_the_first(phase) for phase in case.acts if phase.requests)
    return replace(case, acts=phases, dummy_batches=case.dummy_batches if phases else 0)


def _from_the_first(phase: FuzzPhase) -> FuzzPhase:
    begin = phase.requests[0].at_step
    return replace(phase, requests=tuple(_earlier(request, begin) for request in phase.requests))


def _earlier(request: CaseRequest, by: int) -> CaseRequest:
    abort = None if request.abort_step is None else request.abort_step - by
    return replace(request, at_step=request.at_step - by, abort_step=abort)


class CaseBuilder:
    """Builds a case, one action after the other."""

    def __init__(self, dummy_batches: int = 0) -> None:
        self._dummy_batches = dummy_batches
        self._phases: list[FuzzPhase] = []
        self._budget: int | None = None
        self._requests: list[CaseRequest] = []
        self._step = 0

    @property
    def sent(self) -> Sequence[CaseRequest]:
        """Every request so far, the newest first."""
        before = [request for phase in self._phases for request in phase.requests]
        return [*before, *self._requests][::-1]

    def add_request(self, input_tokens: int, output_tokens: int, shared_prefix_tokens: int) -> None:
        """Add a request; at least the last token of a prompt is its own."""
        shared = min(shared_prefix_tokens, input_tokens - 1)
        self._requests.append(CaseRequest(self._step, input_tokens, output_tokens, shared))

    def make_steps(self, steps: int) -> None:
        """Let the engine make steps."""
        self._step += steps

    def abort(self, back: int) -> None:
        """Abort a request of this phase, counted from the newest; nothing when there is none."""
        at = len(self._requests) - 1 - back
        if at >= 0 and self._requests[at].abort_step is None:
            self._requests[at] = replace(self._requests[at], abort_step=self._step)

    def rest(self, budget: int | None) -> None:
        """Let the engine come to rest, and go on with another token budget."""
        self._phases.append(FuzzPhase(tuple(self._requests), self._budget))
        self._requests, self._step, self._budget = [], 0, budget

    def case(self) -> FuzzCase:
        """Build the case, without actions that make no difference."""
        last = FuzzPhase(tuple(self._requests), self._budget)
        return tidied(FuzzCase((*self._phases, last), self._dummy_batches))


CONV_WIDTH: Final = 4
"""Inputs that a convolution of the models here looks at."""
_USUAL_BLOCK: Final = 128
_OUTPUTS: Final = (1, 2, 3, 4, 5, 8, 13, 24)
_IDLE_BATCHES: Final = (0, 1, 3)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What a case may be made of; each row from the simplest to the nastiest.

    Attributes:
        shares: Lengths of shared prefixes; a prompt takes what is shorter than itself.
        budgets: Most tokens of a step; None for the engine's own.
        idle_batches: Dummy batches whenever the engine comes to rest.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    shares: tuple[int, ...]
    budgets: tuple[int | None, ...]
    idle_batches: tuple[int, ...] = _IDLE_BATCHES


def compute_space(scenario: Scenario) -> SearchSpace:
    """Find the nasty lengths of a scenario's engine.

    Blocks are as long as the scenario says; where it leaves that to the engine, 128 tokens, which
    is what engines here take. Where a hit may end within a block, texts part there as well.
    """
    engine = scenario.engine
    block = engine.block_size or _USUAL_BLOCK
    own = engine.max_num_batched_tokens
    limit = engine.max_model_len
    unit = engine.prefix_match_unit
    around = {most * block + by for most in (1, 2) for by in (-1, 0, 1, CONV_WIDTH - 1)}
    within = (unit, block - unit, block + unit, 2 * block - unit + 1) if unit else ()
    outputs = (*_OUTPUTS, block // 2)
    chunks = {chunk + by for chunk in (own or 0,) if chunk for by in (-1, 1)}
    ends = {length + 1 for length in within}
    inputs = {*range(1, CONV_WIDTH + 2), block // 2, *around, *ends, *chunks, 3 * block}
    budgets = (engine.max_num_seqs, CONV_WIDTH * engine.max_num_seqs, block, block + 1)
    return SearchSpace(
        inputs=tuple(sorted(one for one in inputs if one + max(outputs) <= limit)),
        outputs=outputs,
        shares=(0, block, block - 1, block + 1, 2 * block, *within, limit),
        budgets=(None, *(one for one in reversed(budgets) if own is None or one <= own)),
    )


_TRIALS: Final = {"contract": 1, "performance": 7, "host_sync": 1}
"""Contract trial 0 has the case's own texts; the rest is the least that a scenario may have."""


def build_waves(case: FuzzCase) -> tuple[Wave, ...]:
    """Say a case as waves that arrive by steps."""
    return tuple(Wave.model_validate(_wave(phase)) for phase in case.acts)


def planned(case: FuzzCase, seed: int) -> tuple[PlannedWave, ...]:
    """Make the requests of a case: those that its scenario file asks in its first trial."""
    return expand(build_waves(case), seed)


def render(scenario: Scenario, case: FuzzCase, why: Sequence[str]) -> str:
    """Write a case as a scenario file.

    ``scenario``: of the engine it was played on; gives all that the case does not. ``why``: lines
    about what was wrong.
    """
    engine = scenario.engine.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    workload = scenario.workload
    facts = {"version": 1, "fix": NO_FIX, "requires": list(scenario.needed_fixes)}
    facts |= {"harm": scenario.harm, "accelerator": scenario.accelerator}
    facts |= {"since": scenario.since, "until": scenario.until}
    facts |= {"model": scenario.model, "revision": scenario.revision}
    lines = [
        *text_lines("why", why),
        *table_lines(facts),
        "",
        "[engine]",
        *table_lines(engine),
        "",
        "[workload]",
    ]
    lines += table_lines({"seed": workload.seed, "idle_dummy_batches": case.dummy_batches})
    for phase in case.acts:
        lines += ["", "[[workload.waves]]", *table_lines(_wave(phase))]
    lines += [
        "",
        "[workload.generation]",
        *table_lines(workload.generation.model_dump(mode="json")),
    ]
    lines += ["", "[trials]", *table_lines(_TRIALS)]
    lines += ["", "[expect.exactly]", *table_lines(_contracts(scenario))]
    return "\n".join(lines) + "\n"


def _wave(phase: FuzzPhase) -> dict[str, Any]:
    requests = phase.requests
    aborts = [
        {"request": at, "step": one.abort_step}
        for at, one in enumerate(requests)
        if one.abort_step is not None
    ]
    wave = {
        "requests": len(requests),
        "arrival": "steps",
        "at_step": [one.at_step for one in requests],
        "aborts": aborts,
        "token_budget": phase.token_budget,
        "input_tokens": [one.input_tokens for one in requests],
        "output_tokens": [one.output_tokens for one in requests],
        "shared_prefix_tokens": [one.shared_prefix_tokens for one in requests],
    }
    return {key: value for key, value in wave.items() if value not in (None, [])}


def _contracts(scenario: Scenario) -> dict[str, float]:
    """What the scenario expects, but for answers to tasks, of which a case has none."""
    return {
        key: value for key, value in scenario.expect.exactly.items() if key.startswith("contract.")
    }
