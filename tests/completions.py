"""Answers of contract trials from few words, for tests of what compares tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hybridwatch.records.run import Phase, Run
from hybridwatch.records.trial_parts import CloseCall, Completion
from tests.builders import a_run

Answers = Sequence[Completion]


def said(*tokens: int, near: dict[int, tuple[int, float]] | None = None, **fields: Any):
    """An answer; ``near`` gives by position the token that was nearly chosen and its gap."""
    calls = tuple(CloseCall(at, *call) for at, call in (near or {}).items())
    whole = {"prompt": "0" * 8, "logprobs": (-0.5,) * len(tokens), "close_calls": calls}
    return Completion(tokens=tokens, **{**whole, **fields})


def a_run_that_said(*sides: Sequence[Answers], **changes: Any) -> Run:
    """A run whose sides' contract trials gave these answers, and broke nothing else."""
    run = a_run(*({"contract.padded_rows_prefilling": (0.0,) * len(side)} for side in sides))
    left = [list(side) for side in sides]
    trials = (
        replace(trial, completions=tuple(left[trial.side].pop(0)))
        if trial.phase is Phase.CONTRACT
        else trial
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials), **changes)
