"""Makes stories up, and makes a failing one smaller: hypothesis' rule-based state machine.

The rules write a story down, which is played when it is over. So what comes next hangs on the seed
alone, and a story that was played once need not be played again.
"""

import sys
from collections.abc import Callable
from typing import ClassVar, Final

from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hybridwatch_lab.fuzz.room import Room
from hybridwatch_lab.fuzz.story import Story, Teller

_STEPS: Final = (1, 2, 3, 5, 8, 20)
_FAR_BACK: Final = 3

_machine: Final = st.runner()
_inputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.room.inputs))
_outputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.room.outputs))
_shares: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.room.shares))
_budgets: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.room.budgets))
_idle: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.room.idle_batches))


class StoryMachine(RuleBasedStateMachine):
    """Tells one story; a subclass says of what and to whom.

    Attributes:
        room: What stories are made of.
        play: Plays one; raises an exception when something was wrong.
    """

    room: ClassVar[Room]
    play: ClassVar[Callable[[Story], None]]

    def __init__(self) -> None:
        super().__init__()
        self._teller = Teller()

    @initialize(batches=_idle)
    def begin(self, batches: int) -> None:
        """Choose what the whole story has in common."""
        self._teller = Teller(batches)

    @rule(length=_inputs, answer=_outputs, shared=_shares)
    def ask(self, length: int, answer: int, shared: int) -> None:
        """Let a request come."""
        self._teller.ask(length, answer, shared)

    @rule(length=_inputs, answer=_outputs, steps=st.sampled_from(_STEPS))
    def ask_and_go_on(self, length: int, answer: int, steps: int) -> None:
        """Let a request come that shares nothing, and the engine make steps."""
        self._teller.ask(length, answer, 0)
        self._teller.make_steps(steps)

    @precondition(lambda self: self._teller.asked)
    @rule(back=st.integers(0, _FAR_BACK), answer=_outputs)
    def ask_again(self, back: int, answer: int) -> None:
        """Ask what was asked before, but for what was the earlier prompt's own."""
        asked = self._teller.asked
        before = asked[min(back, len(asked) - 1)]
        self._teller.ask(before.input_tokens, answer, before.shared_prefix_tokens)

    @rule(steps=st.sampled_from(_STEPS))
    def make_steps(self, steps: int) -> None:
        """Let the engine make steps."""
        self._teller.make_steps(steps)

    @rule(back=st.integers(0, _FAR_BACK))
    def abort(self, back: int) -> None:
        """Abort a request."""
        self._teller.abort(back)

    @rule(budget=_budgets)
    def rest(self, budget: int | None) -> None:
        """Let the engine come to rest, and go on with another token budget."""
        self._teller.rest(budget)

    def teardown(self) -> None:
        """Play what was told."""
        if isinstance(sys.exc_info()[1], StopTest):
            return  # hypothesis has given this one up before its end
        story = self._teller.story()
        if story.acts:
            type(self).play(story)


def machine_of(room: Room, play: Callable[[Story], None]) -> type[StoryMachine]:
    """Make the class of state machines that tell stories.

    Args:
        room: What they are made of.
        play: Plays one; raises an exception when something was wrong.
    """
    return type("Fuzzer", (StoryMachine,), {"room": room, "play": staticmethod(play)})
