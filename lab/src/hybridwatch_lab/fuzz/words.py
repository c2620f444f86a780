"""A story and what became of it, in plain words."""

from collections.abc import Iterator

from hybridwatch_lab.fuzz.search import Failure
from hybridwatch_lab.fuzz.story import Act, Story, StoryRequest


def story_lines(story: Story) -> Iterator[str]:
    """Tell a story, a line for each thing that happens."""
    number = 0
    for act in story.acts:
        most = "" if act.token_budget is None else f", at most {act.token_budget} tokens a step"
        yield f"from an engine at rest{most}:"
        for step, line in sorted(_happenings(act, number)):
            yield f"  before step {step}: {line}"
        number += len(act.requests)
        dummies = f", then {story.dummy_batches} dummy batches" if story.dummy_batches else ""
        yield f"  until the engine is at rest{dummies}"


def failure_lines(failure: Failure, seed: int) -> Iterator[str]:
    """Say what was found: the story, what was wrong, and how it was found."""
    yield from story_lines(failure.story)
    yield "what was wrong:"
    yield from (f"  {fault}" for fault in failure.faults)
    if not failure.repeats:
        yield (
            "not repeatable: on an engine on which nothing else was played this story passes, so "
            "what was wrong hangs on what ran before, or on chance"
        )
    yield (
        f"seed {seed}: found after {failure.found_after_s:.0f} s in a story of "
        f"{len(failure.first.requests)} requests; {failure.shrunk_in_s:.0f} s to make it one of "
        f"{len(failure.story.requests)}"
    )


def _happenings(act: Act, first: int) -> Iterator[tuple[int, str]]:
    for at, request in enumerate(act.requests, first):
        yield request.at_step, f"request {at} comes, {_asked(request)}"
        if request.abort_step is not None:
            yield request.abort_step, f"request {at} is aborted, if it is not answered yet"


def _asked(request: StoryRequest) -> str:
    shared = request.shared_prefix_tokens
    common = f", {shared} of them the common text" if shared else ""
    return f"{request.input_tokens} tokens{common}, for an answer of {request.output_tokens}"
