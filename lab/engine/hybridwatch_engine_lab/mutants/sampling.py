"""Mutants of the sampler."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ, of_precision


def seed_ignored(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let a request that names a seed draw from a random one."""

    def add_request(batch: Any, request: Any) -> Any:
        if request.generator is not None:
            request.generator.seed()
            tally.count(changed=True)
        return original(batch, request)

    return add_request


def second_best(original: Any, tally: Tally, *, every: int) -> Any:
    """Let the greedy choice of one row in so many be the second best token.

    ``every``: rows from one such choice to the next.
    """
    rows = 0

    def greedy_sample(logits: Any) -> Any:
        nonlocal rows
        best = original.__func__(logits)
        due = [row for row in range(len(best)) if (rows + row + 1) % every == 0]
        rows += len(best)
        tally.count(changed=bool(due))
        if due:
            best[due] = logits[due].topk(2, dim=-1).indices[:, 1].to(best.dtype)
        return best

    return staticmethod(greedy_sample)


def rounded_logits(original: Any, tally: Tally, *, to: str) -> Any:
    """Choose greedily among logits of less precision. ``to``: type of torch."""

    def greedy_sample(logits: Any) -> Any:
        right = original.__func__(logits)
        wrong = original.__func__(of_precision(logits, to))
        tally.count(changed=differ(right, wrong))
        return wrong

    return staticmethod(greedy_sample)


def temperature_ignored(original: Any, tally: Tally) -> Any:
    """Leave the logits of sampled requests as if every temperature were 1."""
    del original

    def apply_temperature(logits: Any, temperature: Any, all_random: bool) -> Any:
        del all_random
        tally.count(changed=bool((temperature != 1).any()))
        return logits

    return staticmethod(apply_temperature)


def rejected_draft(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Accept the first draft that the target has rejected."""

    def rejection_sample(drafts: Any, counts: list[int], *args: Any, **named: Any) -> Any:
        answer = original(drafts, counts, *args, **named)
        start = 0
        for row, drafted in enumerate(counts):
            taken = int((answer[row] >= 0).sum())
            if drafted:
                rejected = 0 < taken <= drafted
                tally.count(changed=rejected)
                if rejected:
                    answer[row, taken - 1] = drafts[start + taken - 1]
            start += drafted
        return answer

    return rejection_sample
