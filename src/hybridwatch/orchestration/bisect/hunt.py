"""Searches one list: measures its ends, then what says most, until the change has one place."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hybridwatch.analysis.subject import phase_of
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import BuildError, LostProbeError
from hybridwatch.metrics import metric_of
from hybridwatch.orchestration.bisect.candidate import Candidate, Rung
from hybridwatch.orchestration.bisect.journal import Journal
from hybridwatch.orchestration.bisect.meter import Meter
from hybridwatch.orchestration.bisect.outcome import Outcome, State
from hybridwatch.orchestration.bisect.outcome_words import (
    change_words,
    exact_words,
    timed_words,
    unchanged_words,
)
from hybridwatch.orchestration.bisect.posterior.belief import CONFIDENCE, Belief
from hybridwatch.orchestration.bisect.posterior.exact import (
    Answer,
    Place,
    find_exact,
    next_positions,
)
from hybridwatch.orchestration.bisect.posterior.timed import (
    Choice,
    Costs,
    Effect,
    effect_of,
    find_timed,
)
from hybridwatch.orchestration.bisect.question import Question, Wanted, exact_question, is_exact
from hybridwatch.records.run import Phase
from hybridwatch.system.stopping import require_wanted

END_BLOCKS: Final = 20
"""Blocks by which two builds are compared that the whole search rests on."""
_END_DUETS: Final = 4
"""The same where each block starts both engines anew: it is worth as much as a session."""
_FEWEST_END_SESSIONS: Final = 2
"""Of half as many blocks each: one session does not show how far two of them lie apart."""
_MOST_END_SESSIONS: Final = 6
"""Sessions after which ends that do not differ beyond noise are called the same."""
_CONTRACTS: Final = "contracts"
_MINUTE: Final = 60.0
_VERDICTS: Final = {Wanted.REGRESSION: Verdict.REGRESSION, Wanted.FIX: Verdict.IMPROVEMENT}


def end_blocks(metric: str) -> int:
    """Give the number of blocks by which ends are compared."""
    return _END_DUETS if _starts_anew(metric) else END_BLOCKS


def _starts_anew(metric: str) -> bool:
    """Whether each block of a metric starts its engines anew."""
    return phase_of(metric_of(metric)) is Phase.DUET


@dataclass(frozen=True, slots=True)
class Wish:
    """What a search is for.

    Attributes:
        wanted: Which way the change went.
        metric: What changed; empty for whatever did.
        order: Contracts that come before others, if several changed.
    """

    wanted: Wanted
    metric: str
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A change of a time or rate between the ends.

    Attributes:
        metric: Its id.
        wanted: Which way it went.
        effect: What the ends showed.
        costs: What measurements take.
    """

    metric: str
    wanted: Wanted
    effect: Effect
    costs: Costs


@dataclass(frozen=True, slots=True)
class Measurement:
    """A candidate that was measured between the ends, and what it said."""

    at: int
    outcome: Outcome
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class Finding:
    """How far the search of one list came.

    Attributes:
        rung: The list.
        question: What changed; ``None`` if the ends do not differ.
        place: Where; with times the range that is likely enough.
        measured: What was measured between the ends, in order.
        belief: How likely each position is; of times.
        why_not: Why there is no question.
    """

    rung: Rung
    question: Question | TimedQuestion | None
    place: Place
    measured: tuple[Measurement, ...] = ()
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
        candidates = self.rung.candidates
        return candidates[self.place.good], candidates[self.place.bad]

    @property
    def suspects(self) -> tuple[Candidate, ...]:
        """Every candidate that may be the change."""
        return self.rung.candidates[self.place.good + 1 : self.place.bad + 1]


@dataclass(slots=True)
class Hunt:
    """Measures candidates of lists, each once, and remembers.

    Attributes:
        wish: What is looked for.
        meter: Measures.
        journal: Remembers.
        say: Gets a line about what was found.
        seconds: For all of it.
        clock: Seconds.
        lost: Why nothing can be measured any more; empty as long as something can.
    """

    wish: Wish
    meter: Meter
    journal: Journal
    say: Callable[[str], None]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    lost: str = ""
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def may_go_on(self) -> bool:
        """Whether there is time for another measurement, and somebody to make it."""
        return not self.lost and self.clock() - self._begun < self.seconds

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (self.clock() - self._begun) / _MINUTE

    def search(self, rung: Rung) -> Finding:
        """Find the change in a list.

        Raises:
            BuildError: An end cannot be had.
            LostProbeError: An end will not be measured.
            KeyboardInterrupt: A stop was requested; what was measured is kept.
        """
        first, last = rung.ends
        metric = self.wish.metric
        if not metric or is_exact(metric):
            self._expect((first, last))
            ends = self.contracts(first), self.contracts(last)
            for candidate, outcome in zip((first, last), ends, strict=True):
                _require_had(candidate, outcome)
            wish = self.wish
            question = exact_question(*ends, wish.wanted, metric, wish.order)
            if question is not None:
                return self._search_exact(rung, question)
            if metric or {end.state for end in ends} != {State.MEASURED}:
                return _nothing(rung, unchanged_words(metric, *ends))
        timed = self._timed_question(first, last)
        if timed is None:
            what = metric or "contract, and no time or rate,"
            return _nothing(rung, f"no {what} changed between the ends as wanted")
        return self._search_timed(rung, timed)

    def contracts(self, candidate: Candidate) -> Outcome:
        """Measure the contracts of a candidate."""
        return self._measure(candidate, _CONTRACTS, self.meter.contracts)

    def _expect(self, candidates: Sequence[Candidate]) -> None:
        """Let contracts that will or may be asked for be measured meanwhile."""
        fresh = [one for one in candidates if not self.journal.has(f"{one.key} {_CONTRACTS}")]
        self.meter.expect([one.make for one in fresh])

    def times(self, first: Candidate, candidate: Candidate, metric: str, blocks: int) -> Outcome:
        """Time a candidate beside the first one."""

        def measure(label: str) -> Outcome:
            return self.meter.times(first.make(), label, metric, blocks)

        return self._measure(candidate, f"{metric} beside {first.key}", measure, has_noise=True)

    def answer(
        self, question: Question | TimedQuestion, first: Candidate, candidate: Candidate
    ) -> Answer:
        """Say on which side of the change a candidate is by one measurement."""
        if isinstance(question, Question):
            return question.answer(self.contracts(candidate))
        outcome = self.times(first, candidate, question.metric, end_blocks(question.metric))
        if outcome.state is not State.MEASURED:
            return Answer.SKIPPED
        is_changed = question.effect.is_changed(outcome.ratios)
        return Answer.CHANGED if is_changed else Answer.UNCHANGED

    def _measure(
        self,
        candidate: Candidate,
        how: str,
        measure: Callable[[str], Outcome],
        *,
        has_noise: bool = False,
    ) -> Outcome:
        def make_and_measure() -> Outcome:
            require_wanted()
            begun = self.clock()
            try:
                label = candidate.make()
            except BuildError as error:
                outcome = Outcome(state=State.NOT_HAD, reason=str(error).strip()[:2000])
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

    def _search_exact(self, rung: Rung, question: Question) -> Finding:
        made: list[Measurement] = []

        def ask(at: int) -> Answer:
            candidate = rung.candidates[at]
            outcome = self.contracts(candidate)
            answer = question.answer(outcome)
            made.append(Measurement(at, outcome, answer))
            self.say(f"  {candidate.title}: {exact_words(question, outcome, answer)}")
            return answer

        def expect(place: Place) -> None:
            ahead = next_positions(place, self.meter.at_once)
            self._expect([rung.candidates[at] for at in ahead])

        self.say(f"{question.metric}: {question.first:g} -> {question.last:g} between the ends")
        place = find_exact(rung.last, ask, self.may_go_on, expect)
        return Finding(rung, question, place, tuple(made))

    def _timed_question(self, first: Candidate, last: Candidate) -> TimedQuestion | None:
        """Time the ends until they differ beyond noise, or do not after a few sessions."""
        wanted, metric = self.wish.wanted, self.wish.metric
        if not metric:
            metric = self._clearest(first, last)
            if not metric:
                return None
        sessions: list[Sequence[float]] = []
        for _ in range(_MOST_END_SESSIONS):
            outcome = self.times(first, last, metric, end_blocks(metric) // 2)
            if outcome.state is not State.MEASURED:
                raise BuildError(f"{last.title}: {outcome.state.value}: {outcome.reason}")
            sessions.append(outcome.ratios)
            effect = effect_of(sessions, is_anew=_starts_anew(metric))
            if effect.is_clear and len(sessions) >= _FEWEST_END_SESSIONS:
                break
        else:
            return None
        is_worse = metric_of(metric).better.is_worse(effect.size)
        if is_worse is not (wanted is Wanted.REGRESSION):
            return None
        block = outcome.block_minutes
        costs = Costs(max(outcome.minutes - block * len(outcome.ratios), 0.0), block)
        return TimedQuestion(metric, wanted, effect, costs)

    def _clearest(self, first: Candidate, last: Candidate) -> str:
        """Find what changed between the ends most clearly; empty when nothing did."""

        def measure(label: str) -> Outcome:
            verdict = _VERDICTS[self.wish.wanted]
            return self.meter.clearest(first.make(), label, verdict, END_BLOCKS)

        outcome = self._measure(last, f"clearest beside {first.key}", measure)
        if outcome.state is not State.MEASURED:
            raise BuildError(f"{last.title}: {outcome.state.value}: {outcome.reason}")
        return outcome.metric

    def _search_timed(self, rung: Rung, question: TimedQuestion) -> Finding:
        self.say(f"{question.metric}: {change_words(question.effect.size)} between the ends")
        weights = [candidate.weight for candidate in rung.candidates[1:]]
        return self._go_on(rung, question, question.effect.belief(weights), ())

    def reconsider(self, finding: Finding, ratios: Sequence[float]) -> Finding:
        """Learn what the pair that a search by times named gave side by side, and go on.

        Args:
            finding: What the search named.
            ratios: Log ratios of the pair's blocks.
        """
        question, belief, place = finding.question, finding.belief, finding.place
        if not isinstance(question, TimedQuestion) or belief is None:
            raise TypeError("only a search by times can be wrong")
        likelihoods = question.effect.log_likelihoods(ratios)
        belief = belief.after(place.bad, *likelihoods, beside=place.good)
        return self._go_on(finding.rung, question, belief, finding.measured)

    def _go_on(
        self, rung: Rung, question: TimedQuestion, begin: Belief, before: tuple[Measurement, ...]
    ) -> Finding:
        made = list(before)
        first = rung.candidates[0]

        def ask(choice: Choice) -> Sequence[float] | None:
            candidate = rung.candidates[choice.at]
            outcome = self.times(first, candidate, question.metric, choice.blocks)
            made.append(Measurement(choice.at, outcome, None))
            self.say(f"  {candidate.title}: {timed_words(outcome)}")
            return outcome.ratios if outcome.state is State.MEASURED else None

        belief = find_timed(begin, question.effect, question.costs, ask, self.may_go_on)
        best = belief.best()
        found = best if best.mass >= CONFIDENCE else belief.credible()
        place = Place(found.good, found.bad, belief.skipped)
        return Finding(rung, question, place, tuple(made), belief)


def _require_had(candidate: Candidate, outcome: Outcome) -> None:
    """Refuse an end that cannot be measured: without it there is nothing to search for."""
    if outcome.state is State.NOT_HAD:
        raise BuildError(f"{candidate.title}: {outcome.reason}")


def _nothing(rung: Rung, why: str) -> Finding:
    return Finding(rung, None, Place(0, rung.last), why_not=why)
