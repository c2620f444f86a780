"""Has stories told and played until one fails or the time is up, and makes that one smaller."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from hybridwatch_lab.fuzz.machine import machine_of
from hybridwatch_lab.fuzz.room import Room
from hybridwatch_lab.fuzz.story import Act, Story, StoryRequest

ACTIONS: Final = 16
"""Things that happen in a story before it is over."""

_WITHOUT_END: Final = 1_000_000
_PULSE: Final = Story((Act((StoryRequest(0, 3, 2),)),))
"""What a healthy engine always tells right; one that does not is not asked any further."""

Faults = tuple[str, ...]


class Theatre(Protocol):
    """Plays stories, each from a fresh state on."""

    def verdict(self, story: Story) -> Faults:
        """Play a story, and say what was wrong with it."""

    def open_anew(self) -> None:
        """Take another engine, which nothing was played on."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A story that shows something wrong.

    Attributes:
        story: As small as it became.
        faults: What was wrong.
        first: The story that it was made of.
        found_after_s: From the begin of the search.
        shrunk_in_s: What it took to make it smaller.
        repeats: Whether an engine that nothing else was played on fails as well.
    """

    story: Story
    faults: Faults
    first: Story
    found_after_s: float
    shrunk_in_s: float
    repeats: bool


class _WrongError(Exception):
    """A story failed; hypothesis looks for a smaller one."""


class _OverError(BaseException):
    """The search is over; hypothesis does not look at this one."""


@dataclass(slots=True)
class Search:
    """One search.

    Attributes:
        theatre: Plays the stories.
        room: What they are made of.
        limit_s: After so long no story is begun.
        most: Stories that are told at most; None for as many as there is time for.
        clock: Seconds.
    """

    theatre: Theatre
    room: Room
    limit_s: float
    most: int | None = None
    clock: Callable[[], float] = time.monotonic
    _begun: float = 0.0
    _told: int = 0
    _verdicts: dict[Story, Faults] = field(default_factory=dict)
    _first: Story | None = None
    _smallest: Story | None = None
    _found_after_s: float = 0.0
    _has_pulse: bool = False
    _repeats: bool = True

    def run(self, number: int) -> Failure | None:
        """Tell the stories of a seed.

        Args:
            number: The seed; the same one has the same stories told.

        Returns:
            The first failure, made smaller; ``None`` when there was none.
        """
        self._begun = self.clock()
        self._has_pulse = not self.theatre.verdict(_PULSE)
        if not self._has_pulse:
            self._fail(_PULSE)
        else:
            self._tell(number)
        if self._smallest is None or self._first is None:
            return None
        shrunk_in_s = self.clock() - self._begun - self._found_after_s
        story, faults, repeats = self._on_fresh_engine(self._first, self._smallest)
        return Failure(story, faults, self._first, self._found_after_s, shrunk_in_s, repeats)

    def _tell(self, number: int) -> None:
        machine = seed(number)(machine_of(self.room, self._play))
        options = settings(
            max_examples=self.most or _WITHOUT_END,
            stateful_step_count=ACTIONS,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            print_blob=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        try:
            run_state_machine_as_test(machine, settings=options)
        except (_WrongError, _OverError):
            return

    def _play(self, story: Story) -> None:
        known = self._verdicts.get(story)
        if known is None and self._is_late():
            if self._first is None:
                raise _OverError
            return  # the time to make it smaller is up: what was not played is no failure
        faults = self._verdict(story) if known is None else known
        self._verdicts[story] = faults
        if faults:
            if known is None:
                self._fail(story)
            raise _WrongError

    def _verdict(self, story: Story) -> Faults:
        faults = self.theatre.verdict(story)
        if faults and self._first is None:
            return self._confirmed(story, faults)
        if faults and self._has_pulse and self.theatre.verdict(_PULSE):
            # It is the engine that was left unwell, by this story or by another one.
            self.theatre.open_anew()
            return self.theatre.verdict(story)
        return faults

    def _confirmed(self, story: Story, faults: Faults) -> Faults:
        """Play a first failing story again; one that fails once in a row is the end."""
        if self.theatre.verdict(story):
            return faults
        self.theatre.open_anew()
        if self.theatre.verdict(story):
            return faults
        self._verdicts[story] = faults
        self._fail(story)
        self._repeats = False
        raise _OverError

    def _fail(self, story: Story) -> None:
        if self._first is None:
            self._first, self._found_after_s = story, self.clock() - self._begun
        self._smallest = min(self._smallest or story, story, key=_size)

    def _is_late(self) -> bool:
        return self.clock() - self._begun > self.limit_s

    def _on_fresh_engine(self, first: Story, smallest: Story) -> tuple[Story, Faults, bool]:
        """Play the smallest story, or if that passes the first one, on an engine of its own."""
        if self._repeats:
            for story in dict.fromkeys((smallest, first)):
                self.theatre.open_anew()
                faults = self.theatre.verdict(story)
                if faults:
                    return story, faults, True
        return smallest, self._verdicts.get(smallest, ()), False


def _size(story: Story) -> tuple[int, ...]:
    """By how much a reader has to follow: requests first, then acts, aborts and tokens."""
    requests = story.requests
    return (
        len(requests),
        len(story.acts),
        story.aborts,
        sum(one.input_tokens + one.output_tokens for one in requests),
        sum(one.at_step for one in requests),
    )
