"""Plays cases on the live engine of a scenario, and says what was wrong with them.

Each begins in the state of a fresh engine; its answers are compared with those of an oracle.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.control import LiveEngine
from hybridwatch.engines.load_client import read_totals
from hybridwatch.errors import EngineError, MeasurementError
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.phase import CONTRACTS
from hybridwatch.measurement.right_answers import NO_NUMBERS, error_in, read_answered
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.records.run import Completion
from hybridwatch.scenarios.expansion import PlannedRequest
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.stopping import require_wanted
from hybridwatch_lab.fuzz.case import FuzzCase, planned
from hybridwatch_lab.fuzz.oracle_worker import OracleQuestion, OracleWorker
from hybridwatch_lab.in_engine import SETTINGS
from hybridwatch_lab.mutants.faulty_engine import ended_after


@dataclass(frozen=True, slots=True)
class Played:
    """What an engine did with a case.

    Attributes:
        answers: To each; without tokens where its logarithms are no numbers, and where the request
            was to be aborted.
        counters: What the contract probe counted.
        steps: Engine steps that gave tokens.
        preemptions: Requests that gave their blocks up for others.
        trouble: Why the engine did not come to the end of the case; empty if it did.
    """

    requests: tuple[PlannedRequest, ...] = ()
    answers: tuple[Completion, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    preemptions: int = 0
    trouble: str = ""


Prompt = tuple[int, ...]

_MOST_KEPT: Final = 20_000
"""Answers that are remembered; one takes a few kilobytes."""


@dataclass(slots=True)
class Judge:
    """Holds the answers of an engine against those of transformers.

    Attributes:
        worker: Gives right answers; kept alive by the caller.
        bound: Nats within which two ways of computing one thing may differ.
    """

    worker: OracleWorker
    bound: float
    _known: dict[Prompt, Completion] = field(default_factory=dict)

    def faults(self, played: Played) -> tuple[str, ...]:
        """Say what was wrong, in a line each; nothing if all was right."""
        if played.trouble:
            return (f"the engine did not come to the end: {played.trouble}",)
        self._learn(played)
        return (*self._wrong_answers(played), *_broken_contracts(played))

    def _learn(self, played: Played) -> None:
        if len(self._known) > _MOST_KEPT:
            self._known.clear()
        longest: dict[Prompt, Completion] = {}
        for request, answer in zip(played.requests, played.answers, strict=True):
            known = longest.get(request.prompt) or self._known.get(request.prompt)
            if answer.tokens and (known is None or len(known.tokens) < len(answer.tokens)):
                longest[request.prompt] = answer
        questions = [OracleQuestion(p, len(one.tokens), one.tokens) for p, one in longest.items()]
        if not questions:
            return
        for prompt, one in zip(longest, self.worker.answer(questions), strict=True):
            self._known[prompt] = read_answered(one)

    def _wrong_answers(self, played: Played) -> Iterator[str]:
        pairs = zip(played.requests, played.answers, strict=True)
        for number, (request, answer) in enumerate(pairs):
            if not request.has_right_answer:
                continue
            where = f"request {number} ({len(request.prompt)} tokens)"
            if not answer.tokens:
                yield f"{where}: {NO_NUMBERS}"
                continue
            right = first_tokens(self._known[request.prompt], len(answer.tokens))
            if error := error_in(answer, right, self.bound):
                yield f"{where}: {error.why}"


def first_tokens(whole: Completion, tokens: int) -> Completion:
    """Give the beginning of a greedy answer, which is the answer to a shorter request."""
    return replace(
        whole,
        tokens=whole.tokens[:tokens],
        logprobs=whole.logprobs[:tokens],
        close_calls=tuple(one for one in whole.close_calls if one.position < tokens),
    )


def _broken_contracts(played: Played) -> Sequence[str]:
    return [
        f"contract.{name}: expected 0, found {count}"
        for name, count in played.counters.items()
        if count
    ]


LONGEST_S: Final = 60.0
"""A case lasts a second or two; an engine that needs so long counts as hung."""

_SIDE: Final = 0
_PROBE: Final = "contract"


@dataclass(slots=True)
class EngineTarget:
    """A build with the engine of a scenario, on which cases are played; a context manager."""

    scenario: Scenario
    build: BuildRequest
    models: Path
    work: Path
    say: Callable[[str], None]
    mutant: str | None = None
    _pool: EnginePool = field(init=False)
    _is_open: bool = False

    def __enter__(self) -> Self:
        self.open_anew()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the engine."""
        if self._is_open:
            self._pool.close()
        self._is_open = False

    def open_anew(self) -> None:
        """End the engine and start another one."""
        # An engine pool starts an engine only so often.
        self.close()
        self._pool = EnginePool(
            *(self.scenario, (self.build,), self.models, self.work, self.say),
            plugin_settings=SETTINGS,
        )
        self._pool.__enter__()
        with ExitStack() as on_error:
            on_error.callback(self._pool.close)
            self._pool.make_ready(_SIDE).control.mutate(self.mutant)
            on_error.pop_all()
        self._is_open = True

    def play(self, case: FuzzCase) -> Played:
        """Play a case from a fresh state on; an engine that does not survive it is replaced."""
        engine = self._engine()
        with ended_after(engine, LONGEST_S) as expired:
            try:
                played = self._play(engine, case)
                lost = engine.control.count_lost()
            except MeasurementError as error:
                late = f"no end of the case after {LONGEST_S:.0f} s"
                trouble = late if expired.is_set() else str(error).partition("\n")[0]
                played, lost = Played(trouble=trouble), 0
        if lost or played.trouble:
            # Nothing hands blocks back, and with fewer of them no case begins like the others.
            why = played.trouble or f"{lost} blocks or states of requests are lost"
            self.say(f"the engine is given up: {why}")
            self.open_anew()
        return played

    def _engine(self) -> LiveEngine:
        try:
            return self._pool.running(_SIDE)
        except EngineError as error:
            self.say(f"starting another one: {error}")
            self.open_anew()
            return self._pool.running(_SIDE)

    def _play(self, engine: LiveEngine, case: FuzzCase) -> Played:
        control = engine.control
        self._freshen(engine)
        before = read_totals(engine.server)
        control.set_idle_batches(case.dummy_batches)
        control.start_probe(_PROBE)
        waves = planned(case, self.scenario.workload.seed)
        answers = drive_whole(engine, waves)
        counters = control.stop_probe(_PROBE)
        after = read_totals(engine.server)
        return Played(
            requests=tuple(request for wave in waves for request in wave.requests),
            answers=answers,
            counters={name: counters[name] for name in CONTRACTS if name in counters},
            steps=after.steps - before.steps,
            preemptions=after.preemptions - before.preemptions,
        )

    def _freshen(self, engine: LiveEngine) -> None:
        control = engine.control
        # Idle batches first: the reset below must not be followed by any on the old rows.
        control.set_idle_batches(0)
        control.set_token_budget(None)
        control.reset()
        control.clear_cache()


@dataclass(slots=True)
class FuzzCounts:
    """What was played so far."""

    stories: int = 0
    requests: int = 0
    steps: int = 0
    preemptions: int = 0
    aborts: int = 0


@dataclass(slots=True)
class LiveTarget:
    """Plays cases on a live engine and holds them against an oracle."""

    engine_target: EngineTarget
    judge: Judge
    tell: Callable[[FuzzCounts], None]
    counts: FuzzCounts = field(default_factory=FuzzCounts)

    def verdict(self, case: FuzzCase) -> tuple[str, ...]:
        """Play a case, and say what was wrong with it."""
        require_wanted()
        played = self.engine_target.play(case)
        counts = self.counts
        counts.stories += 1
        counts.requests += len(case.requests)
        counts.steps += played.steps
        counts.preemptions += played.preemptions
        counts.aborts += case.aborts
        self.tell(counts)
        return self.judge.faults(played)

    def open_anew(self) -> None:
        """Take another engine, which nothing was played on."""
        self.engine_target.open_anew()
