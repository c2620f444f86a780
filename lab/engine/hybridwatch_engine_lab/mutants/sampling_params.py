"""Mutants of what a request asks of its answer: where it ends, and what is chosen and returned."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ


def stop_of_another(original: Callable[..., bool], tally: Tally) -> Callable[..., bool]:
    """Let a stop token of the request before end this one as well."""
    before: tuple[int, ...] = ()

    def check_stop(request: Any, *args: Any) -> bool:
        nonlocal before
        others, before = before, tuple(request.sampling_params.stop_token_ids or ())
        ended = original(request, *args)
        if ended or not others:
            return ended
        wrong = request.output_token_ids[-1] in others
        tally.count(changed=wrong)
        if wrong:
            request.status = type(request.status).FINISHED_STOPPED
        return wrong

    return check_stop


def eos_ignored(original: Callable[..., bool], tally: Tally) -> Callable[..., bool]:
    """Let the end-of-text token end no request."""

    def check_stop(request: Any, *args: Any) -> bool:
        eos = getattr(request.sampling_params, "eos_token_id", None)
        if eos is None or request.output_token_ids[-1] != eos:
            return original(request, *args)
        goes_on = request.num_output_tokens < request.max_tokens
        tally.count(changed=goes_on)
        return not goes_on and original(request, *args)

    return check_stop


def top_k_of_neighbour(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Draw from as many tokens as the row before may draw from."""

    def apply_top_k_top_p(logits: Any, k: Any, p: Any, *args: Any) -> Any:
        if k is None:
            return original(logits, k, p, *args)
        wrong = k.roll(1, dims=0)
        tally.count(changed=differ(wrong, k))
        return original(logits, wrong, p, *args)

    return apply_top_k_top_p


def penalties_of_neighbour(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Apply to each row the penalties of the row before."""

    def apply_all_penalties(logits: Any, prompts: Any, *args: Any) -> Any:
        penalties, answers = args[:3], args[3:]
        wrong = [one.roll(1, dims=0) for one in penalties]
        tally.count(changed=any(map(differ, wrong, penalties)))
        return original(logits, prompts, *wrong, *answers)

    return apply_all_penalties


def penalties_of_neighbour_v2(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Apply to each row the penalties of the row before, with that one's counts."""

    def apply_penalties(logits: Any, rows: Any, tokens: Any, places: Any, *args: Any) -> None:
        wrong = rows.roll(1, dims=0)
        tally.count(changed=any(differ(one[wrong], one[rows]) for one in args[:3]))
        original(logits, wrong, tokens, places, *args)

    return apply_penalties


def counts_kept(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let a new request begin with the counts of tokens of the one that had its row."""
    del original

    def bincount(*_: Any) -> None:
        tally.count(changed=True)

    return bincount


def bias_kept(original: Callable[..., bool], tally: Tally) -> Callable[..., bool]:
    """Let a request without a bias have that of the one that had its row."""

    def add_request(state: Any, row: int, params: Any) -> bool:
        before = int(state.num_logit_bias.np[row])
        changes = original(state, row, params)
        if not before or params.logit_bias:
            return changes
        tally.count(changed=True)
        state.num_logit_bias.np[row] = before
        state.use_logit_bias[row] = True
        return True

    return add_request


def min_tokens_short(original: Callable[..., bool], tally: Tally) -> Callable[..., bool]:
    """Let an answer end a token too early."""

    def add_request(state: Any, row: int, params: Any) -> bool:
        changes = original(state, row, params)
        if params.min_tokens:
            tally.count(changed=True)
            state.min_lens.np[row] -= 1
        return changes

    return add_request


def prompt_logprobs_late(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Say of each token of a prompt how likely the one before it was."""

    def prompt_logprobs(*args: Any, **named: Any) -> Any:
        answers = original(*args, **named)
        for one in answers.values():
            right = one.logprobs.clone()
            one.logprobs.copy_(right.roll(1, dims=0))
            tally.count(changed=differ(one.logprobs, right))
        return answers

    return prompt_logprobs
