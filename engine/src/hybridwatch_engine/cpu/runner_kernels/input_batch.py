"""Inputs of a step and what it leaves to the next (``v1/worker/gpu/input_batch.py``)."""

from typing import Any

import numpy as np

from hybridwatch_engine.cpu.runner_kernels.launch import Array, flat, real, stands_in_for


@stands_in_for("0afba0f1")
def prefill_inputs(
    *,
    input_ids: Array,
    next_prefill_tokens: Array,
    num_lookahead: int,
    idx_mapping: Array,
    query_start_loc: Array,
    all_token_ids: Array,
    prefill_lens: Array,
    num_computed_tokens: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Tokens of prompts that the step computes, and the first that it does not."""
    (requests,) = grid
    for batch, row in enumerate(real(idx_mapping[:requests]).tolist()):
        computed, length = int(num_computed_tokens[row]), int(prefill_lens[row])
        if computed >= length:
            continue
        start, end = int(query_start_loc[batch]), int(query_start_loc[batch + 1])
        after = computed + end - start
        input_ids[start:end] = all_token_ids[row, computed:after]
        ahead = all_token_ids[row, after : max(after, min(after + num_lookahead, length))]
        next_prefill_tokens[:num_lookahead, row] = 0
        next_prefill_tokens[: len(ahead), row] = ahead


@stands_in_for("930d4531")
def positions_and_lengths(
    *,
    pos: Array,
    seq_lens: Array,
    idx_mapping: Array,
    query_start_loc: Array,
    num_computed_tokens: Array,
    max_num_reqs: int,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Positions of a step's tokens and lengths after it; padded rows have none."""
    requests = grid[0] - 1
    starts = query_start_loc[: requests + 1]
    lengths, first, last = np.diff(starts), int(starts[0]), int(starts[-1])
    computed = num_computed_tokens[real(idx_mapping[:requests])]
    seq_lens[:requests] = computed + lengths
    seq_lens[requests:max_num_reqs] = 0
    pos[first:last] = np.arange(first, last) + np.repeat(computed - starts[:-1], lengths)


@stands_in_for("757d1356")
def combine_tokens(
    *,
    input_ids: Array,
    idx_mapping: Array,
    last_sampled_tokens: Array,
    query_start_loc: Array,
    seq_lens: Array,
    prefill_len: Array,
    draft_tokens: Array,
    cu_num_logits: Array,
    logits_indices: Array,
    NUM_NEW_SAMPLED_TOKENS: int,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    **_: Any,
) -> None:
    """The last token and the drafts of requests past their prompts, and where logits are read."""
    (requests,) = grid
    rows = real(idx_mapping[:requests])
    last, first = flat(last_sampled_tokens), cu_num_logits[:requests]
    logits = cu_num_logits[1 : requests + 1] - first
    ends, lengths, prompts = query_start_loc[1 : requests + 1], seq_lens[:requests], prefill_len
    own = np.repeat(ends - logits - first, logits)
    begin, end = int(cu_num_logits[0]), int(cu_num_logits[requests])
    logits_indices[begin:end] = own + np.arange(begin, end)
    past = lengths > prompts[rows]
    if NUM_NEW_SAMPLED_TOKENS:
        answers = past & (lengths - logits >= prompts[rows])
        input_ids[(ends - logits)[answers]] = last[rows[answers]]
    drafts = np.where(past, logits - NUM_NEW_SAMPLED_TOKENS, 0)
    for batch in np.flatnonzero(drafts > 0).tolist():
        count, after = int(drafts[batch]), int(ends[batch])
        input_ids[after - count : after] = draft_tokens[rows[batch], :count]


@stands_in_for("7705ef45")
def sampled_and_rejected(
    *,
    num_sampled: Array,
    num_rejected: Array,
    seq_lens: Array,
    cu_num_logits: Array,
    idx_mapping: Array,
    prefill_len: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Counts of a step; a request amid its prompt has neither."""
    (requests,) = grid
    amid = seq_lens[:requests] < prefill_len[real(idx_mapping[:requests])]
    sampled = np.where(amid, 0, num_sampled[:requests])
    num_sampled[:requests] = sampled
    num_rejected[:requests] = np.where(amid, 0, np.diff(cu_num_logits[: requests + 1]) - sampled)


@stands_in_for("39d5f0f5")
def after_step(
    *,
    idx_mapping: Array,
    num_computed_tokens: Array,
    last_sampled_tokens: Array,
    output_bin_counts: Array | None,
    sampled_tokens: Array,
    num_sampled: Array,
    num_rejected: Array,
    query_start_loc: Array | None,
    all_token_ids: Array,
    total_len: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Sampled tokens join their requests; absent requests are left out."""
    (requests,) = grid
    last = flat(last_sampled_tokens)
    lengths = np.zeros(requests, np.int32) if query_start_loc is None else np.diff(query_start_loc)
    present = np.flatnonzero(idx_mapping[:requests] >= 0)
    rows = idx_mapping[present]
    num_computed_tokens[rows] += lengths[present] - num_rejected[present]
    for batch, row in zip(present.tolist(), rows.tolist(), strict=True):
        count, total = int(num_sampled[batch]), int(total_len[row])
        if count <= 0:
            continue
        tokens = sampled_tokens[batch, :count]
        last[row] = tokens[-1]
        total_len[row] = total + count
        all_token_ids[row, total : total + count] = tokens
        if output_bin_counts is not None:
            np.add.at(output_bin_counts[row], tokens, 1)


@stands_in_for("b4256070")
def computed_after_step(
    *,
    idx_mapping: Array,
    num_computed_tokens: Array,
    query_start_loc: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Computed tokens of a step that samples nothing."""
    (requests,) = grid
    rows = real(idx_mapping[:requests])
    num_computed_tokens[rows] += np.diff(query_start_loc[: requests + 1])


@stands_in_for("72eebc8c")
def expand_rows(
    *,
    idx_mapping: Array,
    expanded_idx_mapping: Array,
    expanded_local_pos: Array,
    cu_num_logits: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Request of each row of logits, and which of the request's rows it is."""
    (requests,) = grid
    counts, first = np.diff(cu_num_logits[: requests + 1]), cu_num_logits[:requests]
    begin, end = int(cu_num_logits[0]), int(cu_num_logits[requests])
    expanded_idx_mapping[begin:end] = np.repeat(idx_mapping[:requests], counts)
    expanded_local_pos[begin:end] = np.arange(begin, end) - np.repeat(first, counts)
