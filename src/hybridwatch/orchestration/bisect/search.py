"""Searches one list: measures its ends, then the most informative, until one place is left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hybridwatch.analysis.subject import find_phase
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import BuildError, LostProbeError
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.bisect.candidates import Candidate, CandidateList
from hybridwatch.orchestration.bisect.journal import SearchJournal
from hybridwatch.orchestration.bisect.measurer import (
    Measurer,
    render_change,
    render_exact,
    render_timed,
    render_unchanged,
)
from hybridwatch.orchestration.bisect.posterior import (
    CONFIDENCE,
    Belief,
    Costs,
    Effect,
    NextProbe,
    compute_effect,
    find_timed,
)
from hybridwatch.orchestration.bisect.question import (
    Bracket,
    ChangeDirection,
    ExactQuestion,
    ProbeAnswer,
    ProbeOutcome,
    ProbeState,
    exact_question,
    find_exact,
    is_exact,
    next_positions,
)
from hybridwatch.records.run import Phase
from hybridwatch.system.stopping import require_wanted

END_BLOCKS: Final = 20
"""Blocks by which two builds are compared that the whole search rests on."""
_END_DUETS: Final = 4
"""The same where each block starts both engines again: it counts as much as a session."""
_FEWEST_END_SESSIONS: Final = 2
"""Of half as many blocks each: one session does not show how far two of them lie apart."""
_MOST_END_SESSIONS: Final = 6
"""Sessions after which ends that do not differ beyond noise are called the same."""
_CONTRACTS: Final = "contracts"
_MINUTE: Final = 60.0
_VERDICTS: Final = {
    ChangeDirection.REGRESSION: Verdict.REGRESSION,
    ChangeDirection.FIX: Verdict.IMPROVEMENT,
}


def end_blocks(metric: str) -> int:
    """Give the number of blocks by which ends are compared."""
    return _END_DUETS if _restarts_engines(metric) else END_BLOCKS


def _restarts_engines(metric: str) -> bool:
    return find_phase(find_metric(metric)) is Phase.DUET


@dataclass(frozen=True, slots=True)
class SearchGoal:
    """What a search is for; an empty ``metric`` is any, first the contracts in ``order``."""

    wanted: ChangeDirection
    metric: str
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A change of a time or rate between the ends."""

    metric: str
    wanted: ChangeDirection
    effect: Effect
    costs: Costs


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """A candidate that was measured between the ends, and what it said."""

    at: int
    outcome: ProbeOutcome
    answer: ProbeAnswer | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How far a list's search came; without a ``question`` the ends do not differ as wanted."""

    candidates: CandidateList
    question: ExactQuestion | TimedQuestion | None
    place: Bracket
    measured: tuple[CandidateOutcome, ...] = ()
    belief: Belief | None = None
    why_not: str = ""

    @property
    def is_found(self) -> bool:
        """Whether the change is one candidate."""
        return self.question is not None and self.is_sure and self.place.is_found

    @property
    def is_sure(self) -> bool:
        """Whether the place is certain, or of times likely enough."""
        return self.belief is None or self.belief.best().mass >= CONFIDENCE

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing between the pair is left to be measured."""
        return self.question is not None and self.is_sure and not self.place.open

    @property
    def pair(self) -> tuple[Candidate, Candidate]:
        """The last candidate before the change, and the first behind it."""
        candidates = self.candidates.entries
        return candidates[self.place.good], candidates[self.place.bad]

    @property
    def suspects(self) -> tuple[Candidate, ...]:
        """Every candidate that may be the change."""
        return self.candidates.entries[self.place.good + 1 : self.place.bad + 1]


@dataclass(slots=True)
class BisectSearch:
    """Measures candidates, each once, for so many seconds; ``lost`` says why nothing more can."""

    goal: SearchGoal
    measurer: Measurer
    journal: SearchJournal
    say: Callable[[str], None]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    lost: str = ""
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def may_go_on(self) -> bool:
        """Whether there is time for another measurement, and a host to make it."""
        return not self.lost and self.clock() - self._begun < self.seconds

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (self.clock() - self._begun) / _MINUTE

    def search(self, candidates: CandidateList) -> SearchResult:
        """Find the change in a list; no end may be missing (``BuildError``, ``LostProbeError``)."""
        first, last = candidates.ends
        metric = self.goal.metric
        if not metric or is_exact(metric):
            self._expect((first, last))
            ends = self.contracts(first), self.contracts(last)
            for candidate, outcome in zip((first, last), ends, strict=True):
                if outcome.state is ProbeState.NOT_HAD:  # without it there is nothing to search
                    raise BuildError(f"{candidate.title}: {outcome.reason}")
            question = exact_question(*ends, self.goal.wanted, metric, self.goal.order)
            if question is not None:
                return self._search_exact(candidates, question)
            if metric or {end.state for end in ends} != {ProbeState.MEASURED}:
                return _nothing(candidates, render_unchanged(metric, *ends))
        timed = self._timed_question(first, last)
        if timed is None:
            what = metric or "contract, and no time or rate,"
            return _nothing(candidates, f"no {what} changed between the ends as wanted")
        self.say(f"{timed.metric}: {render_change(timed.effect.size)} between the ends")
        weights = [candidate.weight for candidate in candidates.entries[1:]]
        return self._go_on(candidates, timed, timed.effect.belief(weights), ())

    def contracts(self, candidate: Candidate) -> ProbeOutcome:
        """Measure the contracts of a candidate."""
        return self._measure(candidate, _CONTRACTS, self.measurer.contracts)

    def _expect(self, candidates: Sequence[Candidate]) -> None:
        fresh = [one for one in candidates if not self.journal.has(f"{one.key} {_CONTRACTS}")]
        self.measurer.expect([one.make for one in fresh])

    def times(
        self, first: Candidate, candidate: Candidate, metric: str, blocks: int
    ) -> ProbeOutcome:
        """Time a candidate next to the first one."""

        def measure(label: str) -> ProbeOutcome:
            return self.measurer.times(first.make(), label, metric, blocks)

        return self._measure(candidate, f"{metric} beside {first.key}", measure, has_noise=True)

    def answer(
        self, question: ExactQuestion | TimedQuestion, first: Candidate, candidate: Candidate
    ) -> ProbeAnswer:
        """Say on which side of the change a candidate is by one measurement."""
        if isinstance(question, ExactQuestion):
            return question.answer(self.contracts(candidate))
        outcome = self.times(first, candidate, question.metric, end_blocks(question.metric))
        if outcome.state is not ProbeState.MEASURED:
            return ProbeAnswer.SKIPPED
        is_changed = question.effect.is_changed(outcome.ratios)
        return ProbeAnswer.CHANGED if is_changed else ProbeAnswer.UNCHANGED

    def _measure(
        self,
        candidate: Candidate,
        how: str,
        measure: Callable[[str], ProbeOutcome],
        *,
        has_noise: bool = False,
    ) -> ProbeOutcome:
        def make_and_measure() -> ProbeOutcome:
            require_wanted()
            begun = self.clock()
            try:
                label = candidate.make()
            except BuildError as error:
                outcome = ProbeOutcome(state=ProbeState.NOT_HAD, reason=str(error).strip()[:2000])
            else:
                try:
                    outcome = measure(label)
                except LostProbeError as error:
                    self.lost = str(error)
                    raise
                # An engine that was ended by request has failed nothing.
                require_wanted()
            minutes = round((self.clock() - begun) / _MINUTE, 3)
            return outcome.model_copy(update={"minutes": minutes})

        key = f"{candidate.key} {how}"
        return self.journal.outcome(key, make_and_measure, has_noise=has_noise)

    def _search_exact(self, candidates: CandidateList, question: ExactQuestion) -> SearchResult:
        made: list[CandidateOutcome] = []

        def ask(at: int) -> ProbeAnswer:
            candidate = candidates.entries[at]
            outcome = self.contracts(candidate)
            answer = question.answer(outcome)
            made.append(CandidateOutcome(at, outcome, answer))
            self.say(f"  {candidate.title}: {render_exact(question, outcome, answer)}")
            return answer

        def expect(place: Bracket) -> None:
            ahead = next_positions(place, self.measurer.at_once)
            self._expect([candidates.entries[at] for at in ahead])

        self.say(f"{question.metric}: {question.first:g} -> {question.last:g} between the ends")
        place = find_exact(candidates.last, ask, self.may_go_on, expect)
        return SearchResult(candidates, question, place, tuple(made))

    def _timed_question(self, first: Candidate, last: Candidate) -> TimedQuestion | None:
        """Time the ends until they differ beyond noise, or do not after a few sessions."""
        wanted, metric = self.goal.wanted, self.goal.metric
        if not metric:
            metric = self._clearest(first, last)
            if not metric:
                return None
        sessions: list[Sequence[float]] = []
        for _ in range(_MOST_END_SESSIONS):
            outcome = self.times(first, last, metric, end_blocks(metric) // 2)
            if outcome.state is not ProbeState.MEASURED:
                raise BuildError(f"{last.title}: {outcome.state.value}: {outcome.reason}")
            sessions.append(outcome.ratios)
            effect = compute_effect(sessions, restarts=_restarts_engines(metric))
            if effect.is_clear and len(sessions) >= _FEWEST_END_SESSIONS:
                break
        else:
            return None
        is_worse = find_metric(metric).better.is_worse(effect.size)
        if is_worse is not (wanted is ChangeDirection.REGRESSION):
            return None
        block = outcome.block_minutes
        costs = Costs(max(outcome.minutes - block * len(outcome.ratios), 0.0), block)
        return TimedQuestion(metric, wanted, effect, costs)

    def _clearest(self, first: Candidate, last: Candidate) -> str:
        def measure(label: str) -> ProbeOutcome:
            verdict = _VERDICTS[self.goal.wanted]
            return self.measurer.clearest(first.make(), label, verdict, END_BLOCKS)

        outcome = self._measure(last, f"clearest beside {first.key}", measure)
        if outcome.state is not ProbeState.MEASURED:
            raise BuildError(f"{last.title}: {outcome.state.value}: {outcome.reason}")
        return outcome.metric

    def reconsider(self, finding: SearchResult, ratios: Sequence[float]) -> SearchResult:
        """Learn what the pair that a search by times named gave side by side, and go on."""
        question, belief, place = finding.question, finding.belief, finding.place
        if not isinstance(question, TimedQuestion) or belief is None:
            raise TypeError("only a search by times can be wrong")
        likelihoods = question.effect.log_likelihoods(ratios)
        belief = belief.after(place.bad, *likelihoods, reference=place.good)
        return self._go_on(finding.candidates, question, belief, finding.measured)

    def _go_on(
        self,
        candidates: CandidateList,
        question: TimedQuestion,
        begin: Belief,
        before: tuple[CandidateOutcome, ...],
    ) -> SearchResult:
        made = list(before)
        first = candidates.entries[0]

        def ask(choice: NextProbe) -> Sequence[float] | None:
            candidate = candidates.entries[choice.at]
            outcome = self.times(first, candidate, question.metric, choice.blocks)
            made.append(CandidateOutcome(choice.at, outcome, None))
            self.say(f"  {candidate.title}: {render_timed(outcome)}")
            return outcome.ratios if outcome.state is ProbeState.MEASURED else None

        belief = find_timed(begin, question.effect, question.costs, ask, self.may_go_on)
        best = belief.best()
        found = best if best.mass >= CONFIDENCE else belief.credible()
        place = Bracket(found.good, found.bad, belief.skipped)
        return SearchResult(candidates, question, place, tuple(made), belief)


def _nothing(candidates: CandidateList, why: str) -> SearchResult:
    return SearchResult(candidates, None, Bracket(0, candidates.last), why_not=why)
