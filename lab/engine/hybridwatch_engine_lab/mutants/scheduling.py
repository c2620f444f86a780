"""Mutants of how far the scheduler believes a request to be, and of preempted requests."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, clear_states


def miscounted_chunk(
    original: Callable[..., Any], tally: Tally, *, plus: int
) -> Callable[..., Any]:
    """Let the next chunk of a prompt begin too early or too late.

    ``plus``: tokens; a negative number computes some twice, a positive one leaves some out.
    """

    def update(scheduler: Any, output: Any) -> None:
        original(scheduler, output)
        for request_id in output.num_scheduled_tokens:
            request = scheduler.requests[request_id]
            left = request.num_tokens - request.num_computed_tokens
            if request.is_prefill_chunk and left > 1:
                tally.count(changed=True)
                request.num_computed_tokens += plus

    return update


def resumed_without_state(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Clear the states of a request in the step after the one that resumes it."""
    resumed: set[str] = set()

    def update_states(runner: Any, output: Any) -> Any:
        for request_id in resumed & output.num_scheduled_tokens.keys():
            tally.count(changed=clear_states(runner, request_id))
        resumed.clear()
        answer = original(runner, output)
        resumed.update(output.scheduled_cached_reqs.resumed_req_ids)
        return answer

    return update_states


def resumed_in_old_blocks(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let a resumed request have the blocks that it had before it was preempted."""

    def update_states(runner: Any, output: Any) -> Any:
        cached = output.scheduled_cached_reqs
        for index, request_id in enumerate(cached.req_ids):
            if request_id in cached.resumed_req_ids:
                old, new = runner.requests[request_id].block_ids, cached.new_block_ids[index]
                kept = tuple(
                    [*mine[: len(fresh)], *fresh[len(mine) :]]
                    for mine, fresh in zip(old, new, strict=True)
                )
                tally.count(changed=any(a != b for a, b in zip(kept, new, strict=True)))
                cached.new_block_ids[index] = kept
        return original(runner, output)

    return update_states
