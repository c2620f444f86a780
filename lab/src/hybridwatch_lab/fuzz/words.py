"""A case and what became of it, in plain words."""

from collections.abc import Iterator

from hybridwatch_lab.fuzz.case import CaseRequest, FuzzCase, FuzzPhase
from hybridwatch_lab.fuzz.search import FuzzFailure


def case_lines(case: FuzzCase) -> Iterator[str]:
    """Tell a case, a line for each thing that happens."""
    number = 0
    for phase in case.acts:
        most = "" if phase.token_budget is None else f", at most {phase.token_budget} tokens a step"
        yield f"from an engine at rest{most}:"
        for step, line in sorted(_happenings(phase, number)):
            yield f"  before step {step}: {line}"
        number += len(phase.requests)
        dummies = f", then {case.dummy_batches} dummy batches" if case.dummy_batches else ""
        yield f"  until the engine is at rest{dummies}"


def failure_lines(failure: FuzzFailure, seed: int) -> Iterator[str]:
    """Say what was found: the case, what was wrong, and how it was found."""
    yield from case_lines(failure.case)
    yield "what was wrong:"
    yield from (f"  {fault}" for fault in failure.faults)
    if not failure.repeats:
        yield (
            "not repeatable: on an engine on which nothing else was played this case passes, so "
            "what was wrong hangs on what ran before, or on chance"
        )
    yield (
        f"seed {seed}: found after {failure.found_after_s:.0f} s in a case of "
        f"{len(failure.first.requests)} requests; {failure.shrunk_in_s:.0f} s to make it one of "
        f"{len(failure.case.requests)}"
    )


def _happenings(phase: FuzzPhase, first: int) -> Iterator[tuple[int, str]]:
    for at, request in enumerate(phase.requests, first):
        yield request.at_step, f"request {at} comes, {_asked(request)}"
        if request.abort_step is not None:
            yield request.abort_step, f"request {at} is aborted, if it is not answered yet"


def _asked(request: CaseRequest) -> str:
    shared = request.shared_prefix_tokens
    common = f", {shared} of them the common text" if shared else ""
    return f"{request.input_tokens} tokens{common}, for an answer of {request.output_tokens}"
