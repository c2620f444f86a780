"""Runs several sessions phase by phase: all contracts come before anything is timed.

Each engine is started once, while sessions before it are measured, but never timed.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from hybridwatch.engines.preflight import Needs, free_memory
from hybridwatch.errors import BuildError, EngineError
from hybridwatch.measurement.accuracy.harness import LmEval
from hybridwatch.measurement.engine_pool import list_engines
from hybridwatch.measurement.plan import TIMED_PHASES
from hybridwatch.measurement.session import Session
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.records.run import STOPPED, Phase, Run
from hybridwatch.system.stopping import require_wanted

STAGES: Final[tuple[tuple[Phase, ...], ...]] = (
    (Phase.CONTRACT,),
    (Phase.ACCURACY,),
    TIMED_PHASES,
)
"""Which phases are made of every session before the next stage begins."""


@dataclass(frozen=True, slots=True)
class PhaseStep:
    """One stage of one session, and what comes up meanwhile.

    Attributes:
        ahead: The session whose engine comes up together with this one's; ``None`` for none.
        next_up: The session whose engine comes up from then on; ``None`` for none.
        clients: Whether the session's load clients get ready meanwhile.
    """

    session: int
    phases: tuple[Phase, ...]
    ahead: int | None = None
    next_up: int | None = None
    clients: bool = False
    last: bool = False


def plan_steps(phases: Sequence[Sequence[Phase]], at_once: Sequence[int]) -> tuple[PhaseStep, ...]:
    """Lay out sessions in groups that have their engines at once; one ends before the next."""
    steps: list[PhaseStep] = []
    first = 0
    for count in at_once:
        steps += _steps_of_group(phases, range(first, first + count))
        first += count
    return tuple(steps)


def _steps_of_group(phases: Sequence[Sequence[Phase]], group: range) -> Iterator[PhaseStep]:
    waiting = list(group)

    def next_engine() -> int | None:
        return waiting.pop(0) if waiting else None

    for number, stage in enumerate(STAGES):
        for session in group:
            own = tuple(phase for phase in stage if phase in phases[session])
            if not own:
                continue
            first = len(waiting) == len(group)
            if session in waiting:
                waiting.remove(session)
            timed = stage == TIMED_PHASES
            ahead = next_engine() if first and not timed else None
            next_up = None if timed else next_engine()
            later = {phase for after in STAGES[number + 1 :] for phase in after}
            left = later.intersection(phases[session])
            # Its imports take a core for seconds: they must not fall into a timed trial.
            clients = stage == (Phase.ACCURACY,) and not left.isdisjoint(TIMED_PHASES)
            yield PhaseStep(session, own, ahead, next_up, clients=clients, last=not left)


def group_sizes(needs: Sequence[int], free: int) -> tuple[int, ...]:
    """Say how many sessions, in their order, fit into the free bytes at a time; one at least."""
    sizes: list[int] = []
    used = 0
    for need in needs:
        if sizes and used + need <= free:
            sizes[-1] += 1
            used += need
        else:
            sizes.append(1)
            used = need
    return tuple(sizes)


class PhasedRun:
    """Sessions made stage by stage, each of one CPU build without budget; a context manager."""

    def __init__(self, requests: Sequence[SessionRequest]) -> None:
        self._requests = requests
        self._sessions: dict[int, Session] = {}
        self._open: dict[int, ExitStack] = {}
        self._over: set[int] = set()
        self._folders = ExitStack()
        self.steps = plan_steps(
            [tuple(dict.fromkeys(trial.phase for trial in one.left)) for one in requests],
            group_sizes([_memory(one) for one in requests], free_memory().bytes),
        )

    def __enter__(self) -> Self:
        folder = tempfile.TemporaryDirectory(prefix="hybridwatch-")
        self._work = Path(self._folders.enter_context(folder))
        self._lm_eval = self._folders.enter_context(LmEval(self._work))
        if any(Phase.ACCURACY in step.phases for step in self.steps):
            self._lm_eval.start_ahead()  # the first engine takes longer to come up
        return self

    def __exit__(self, *_: object) -> None:
        with self._folders:
            for number in tuple(self._open):
                self._end(number)

    def make(self, step: PhaseStep) -> Run:
        """Make the trials of a step; the run has those of the session's earlier steps, too.

        A session that fails after a whole phase has failed trials for what it lacks; an
        ``EngineError`` leaves nothing to record. After a stop, a ``KeyboardInterrupt``, see
        ``cut_short``.
        """
        try:
            run = self._make(step)
        except (EngineError, BuildError) as error:
            require_wanted()
            self._end(step.session)
            kept = self.cut_short(step.session, f"not measured: {error}")
            if kept is None:
                raise
            return kept
        if step.last:
            self._end(step.session)
        return run

    def _make(self, step: PhaseStep) -> Run:
        session = self._session(step.session)
        session.start_ahead()
        if step.ahead is not None:
            self._start_ahead(step.ahead)
        session.begin()
        if step.next_up is not None:
            self._start_ahead(step.next_up)
        if step.clients:
            session.start_clients_ahead()
        run = session.make(step.phases)
        return session.look_again() if step.last else run

    def is_over(self, session: int) -> bool:
        """Whether nothing more is made of a session: it is whole, or it has failed."""
        return session in self._over

    def cut_short(self, session: int, reason: str = STOPPED) -> Run | None:
        """Give what a session has measured so far; ``None`` when it is not worth keeping."""
        begun = self._sessions.get(session)
        return None if begun is None else begun.cut_short(reason)

    def _session(self, number: int) -> Session:
        if number not in self._sessions:
            work = self._work / str(number)
            work.mkdir(exist_ok=True)
            session = Session(self._requests[number], work, self._lm_eval)
            with ExitStack() as on_error:
                on_error.enter_context(session)
                self._open[number] = on_error.pop_all()
            self._sessions[number] = session
        return self._sessions[number]

    def _start_ahead(self, number: int) -> None:
        """What is wrong with it is reported when its own turn comes."""
        try:
            self._session(number).start_ahead()
        except (EngineError, BuildError):
            require_wanted()

    def _end(self, number: int) -> None:
        self._over.add(number)
        self._open.pop(number, ExitStack()).close()


def _memory(request: SessionRequest) -> int:
    build = request.sides[0].spec
    return Needs.of(request.scenario, [build] * list_engines(request.sides)).memory
