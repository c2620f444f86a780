"""Makes cases up, and makes a failing one smaller: hypothesis' rule-based state machine.

The rules write a case down, which is played when it is over. So what comes next hangs on the seed
alone, and a case that was played once need not be played again.
"""

import sys
from collections.abc import Callable
from typing import ClassVar, Final

from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hybridwatch_lab.fuzz.case import CaseBuilder, FuzzCase
from hybridwatch_lab.fuzz.space import SearchSpace

_STEPS: Final = (1, 2, 3, 5, 8, 20)
_FAR_BACK: Final = 3

_machine: Final = st.runner()
_inputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.inputs))
_outputs: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.outputs))
_shares: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.shares))
_budgets: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.budgets))
_idle: Final = _machine.flatmap(lambda machine: st.sampled_from(machine.space.idle_batches))


class CaseMachine(RuleBasedStateMachine):
    """Tells one case; a subclass says of what and to whom.

    Attributes:
        space: What cases are made of.
        play: Plays one; raises an exception when something was wrong.
    """

    space: ClassVar[SearchSpace]
    play: ClassVar[Callable[[FuzzCase], None]]

    def __init__(self) -> None:
        super().__init__()
        self._builder = CaseBuilder()

    @initialize(batches=_idle)
    def begin(self, batches: int) -> None:
        """Choose what the whole case has in common."""
        self._builder = CaseBuilder(batches)

    @rule(length=_inputs, answer=_outputs, shared=_shares)
    def ask(self, length: int, answer: int, shared: int) -> None:
        """Let a request come."""
        self._builder.ask(length, answer, shared)

    @rule(length=_inputs, answer=_outputs, steps=st.sampled_from(_STEPS))
    def ask_and_go_on(self, length: int, answer: int, steps: int) -> None:
        """Let a request come that shares nothing, and the engine make steps."""
        self._builder.ask(length, answer, 0)
        self._builder.make_steps(steps)

    @precondition(lambda self: self._builder.asked)
    @rule(back=st.integers(0, _FAR_BACK), answer=_outputs)
    def ask_again(self, back: int, answer: int) -> None:
        """Ask what was asked before, but for what was the earlier prompt's own."""
        asked = self._builder.asked
        before = asked[min(back, len(asked) - 1)]
        self._builder.ask(before.input_tokens, answer, before.shared_prefix_tokens)

    @rule(steps=st.sampled_from(_STEPS))
    def make_steps(self, steps: int) -> None:
        """Let the engine make steps."""
        self._builder.make_steps(steps)

    @rule(back=st.integers(0, _FAR_BACK))
    def abort(self, back: int) -> None:
        """Abort a request."""
        self._builder.abort(back)

    @rule(budget=_budgets)
    def rest(self, budget: int | None) -> None:
        """Let the engine come to rest, and go on with another token budget."""
        self._builder.rest(budget)

    def teardown(self) -> None:
        """Play what was told."""
        if isinstance(sys.exc_info()[1], StopTest):
            return  # hypothesis has given this one up before its end
        case = self._builder.case()
        if case.acts:
            type(self).play(case)


def build_machine(space: SearchSpace, play: Callable[[FuzzCase], None]) -> type[CaseMachine]:
    """Make the class of state machines that make cases.

    Args:
        space: What they are made of.
        play: Plays one; raises an exception when something was wrong.
    """
    return type("Fuzzer", (CaseMachine,), {"space": space, "play": staticmethod(play)})
