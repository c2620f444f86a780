"""What was wrong with a played case: its answers beside those of an oracle, and its contracts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hybridwatch.engines.oracle import OracleQuestion, OracleWorker
from hybridwatch.measurement.accuracy.oracle import NO_NUMBERS, error_in
from hybridwatch.measurement.make_oracle import read_answered
from hybridwatch.records.trial_parts import Completion
from hybridwatch_lab.fuzz.played import Played

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
        """Say what was wrong, in a line each; nothing if all was right.

        Raises:
            BuildError: The oracle has ended.
        """
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
