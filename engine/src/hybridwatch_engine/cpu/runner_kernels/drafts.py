"""Stand-ins for the kernels of a step's inputs, its bookkeeping, and drafts (ngram, draft heads).

The kernels are those of ``v1/worker/gpu/input_batch.py`` and ``v1/worker/gpu/spec_decode``.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

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


@stands_in_for("51d18b47")
def gather_drafts(
    *,
    draft_sampled: Array,
    pos: Array,
    input_ids: Array,
    positions: Array,
    logits_indices: Array,
    expanded_idx_mapping: Array,
    expanded_local_pos: Array,
    prefill_len: Array,
    num_logits: int,
    **_: Any,
) -> None:
    """Token and position of each row of logits; -1 for drafts of prompts, which are none."""
    tokens, local = logits_indices[:num_logits], expanded_local_pos[:num_logits]
    placed, prompts = positions[tokens], prefill_len[real(expanded_idx_mapping[:num_logits])]
    absent = (local > 0) & (placed - local < prompts)
    draft_sampled[:num_logits] = np.where(absent, -1, input_ids[tokens])
    pos[:num_logits] = placed


@stands_in_for("b74dd8b0")
def scan_ngrams(
    *,
    token_ids: Array,
    idx_mapping: Array,
    total_len: Array,
    num_sampled: Array,
    scratch: Array,
    L: int,  # noqa: N803 - the kernel's name
    grid: tuple[int, int],
    **sizes: Any,
) -> None:
    """The longest and last earlier occurrence of a request's ending, in each block of its tokens.

    It is encoded as one number: length x (L + 1) + place + 1.
    """
    requests, blocks = grid
    for batch, row in enumerate(real(idx_mapping[:requests]).tolist()):
        length, best = int(total_len[row]), np.zeros(blocks * sizes["BLOCK_L"], np.int64)
        tokens = token_ids[row, :length]
        longest = min(sizes["MAX_N"], length - 1) if num_sampled[batch] > 0 else 0
        for count in range(sizes["MIN_N"], longest + 1):
            windows = sliding_window_view(tokens[:-1], count)
            places = np.flatnonzero((windows == tokens[length - count :]).all(axis=1))
            best[places] = count * (L + 1) + places + 1
        scratch[batch, :blocks] = best.reshape(blocks, -1).max(axis=1)


@stands_in_for("5f017cb6")
def propose_ngrams(
    *,
    token_ids: Array,
    idx_mapping: Array,
    total_len: Array,
    num_sampled: Array,
    last_sampled: Array,
    scratch: Array,
    drafts: Array,
    L: int,  # noqa: N803 - the kernel's name
    N_BLOCKS: int,  # noqa: N803 - the kernel's name
    K: int,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    **_: Any,
) -> None:
    """The tokens after that occurrence, or the last token where there is none."""
    (requests,) = grid
    proposed = flat(drafts)
    for batch, row in enumerate(real(idx_mapping[:requests]).tolist()):
        found = proposed[batch * K : (batch + 1) * K]
        found[:] = last_sampled[row]
        score = int(scratch[batch, :N_BLOCKS].max())
        if score > 0 and num_sampled[batch] > 0:
            length, place = divmod(score - 1, L + 1)
            start = length + place
            later = token_ids[row, start : min(start + K, int(total_len[row]))]
            found[: len(later)] = later


@stands_in_for("c1a2fc56")
def first_draft_inputs(
    *,
    last_token_indices: Array,
    draft_current_step: Array,
    draft_input_ids: Array,
    draft_positions: Array,
    draft_query_start_loc: Array,
    draft_seq_lens: Array,
    target_input_ids: Array,
    target_positions: Array,
    idx_mapping: Array,
    last_sampled: Array,
    next_prefill_tokens: Array,
    num_sampled: Array,
    num_rejected: Array,
    query_start_loc: Array,
    seq_lens: Array,
    max_num_reqs: int,
    grid: tuple[int],
    **_: Any,
) -> None:
    """A head's inputs for its first draft: the target's, one token on, without rejected drafts."""
    (requests,) = grid
    rows = real(idx_mapping[:requests])
    sampled = num_sampled[:requests] > 0
    following = np.where(sampled, flat(last_sampled)[rows], flat(next_prefill_tokens)[rows])
    for batch in range(requests):
        start = int(query_start_loc[batch])
        after = int(query_start_loc[batch + 1]) - int(num_rejected[batch])
        draft_input_ids[start : after - 1] = target_input_ids[start + 1 : after]
        draft_input_ids[after - 1] = following[batch]
        draft_positions[start:after] = target_positions[start:after]
        last_token_indices[batch] = after - 1
    draft_query_start_loc[:requests] = query_start_loc[:requests]
    draft_query_start_loc[requests : max_num_reqs + 1] = query_start_loc[requests]
    draft_seq_lens[:requests] = seq_lens[:requests]
    draft_seq_lens[requests:max_num_reqs] = last_token_indices[requests:max_num_reqs] = 0
    draft_current_step[...] = 0


@stands_in_for("34319cf0", "ea7e2c8a")
def second_draft_inputs(
    *,
    draft_tokens: Array,
    target_seq_lens: Array,
    num_rejected: Array,
    input_ids: Array,
    positions: Array,
    query_start_loc: Array,
    seq_lens: Array,
    max_model_len: int,
    max_num_reqs: int,
    ADVANCE_DRAFT_POSITIONS: bool,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    sample_src_positions: Array | None = None,
    **_: Any,
) -> None:
    """A head's inputs for its second draft: one token of each request."""
    requests = grid[0] - 1
    query_start_loc[: max_num_reqs + 1] = np.minimum(np.arange(max_num_reqs + 1), requests)
    seq_lens[requests:max_num_reqs] = 0
    first = draft_tokens if draft_tokens.ndim == 1 else draft_tokens[:, 0]
    input_ids[:requests] = first[:requests]
    if sample_src_positions is not None:
        sample_src_positions[:requests] += 1
    lengths = target_seq_lens[:requests] - num_rejected[:requests]
    if ADVANCE_DRAFT_POSITIONS:
        positions[:requests] = np.minimum(positions[:requests] + 1, max_model_len - 1)
        lengths = np.minimum(lengths + 1, max_model_len)
    seq_lens[:requests] = lengths


@stands_in_for("5d839540", "2f336f89")
def next_draft_inputs(
    *,
    output_draft_tokens: Array,
    next_input_hidden_states: Any,
    input_ids: Array,
    positions: Array,
    seq_lens: Array,
    draft_tokens: Array,
    current_draft_step: Array,
    hidden_states: Any,
    hidden_size: int,
    max_model_len: int,
    num_speculative_steps: int,
    ADVANCE_DRAFT_POSITIONS: bool,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    sample_src_positions: Array | None = None,
    **_: Any,
) -> None:
    """A head's inputs for its next draft."""
    (requests,) = grid
    step = int(current_draft_step.reshape(-1)[0])
    output_draft_tokens[:requests, step] = draft_tokens[:requests]
    if step >= num_speculative_steps - 1:
        return
    if sample_src_positions is not None:
        sample_src_positions[:requests] += 1
    input_ids[:requests] = draft_tokens[:requests]
    next_input_hidden_states[:requests, :hidden_size] = hidden_states[:requests, :hidden_size]
    if ADVANCE_DRAFT_POSITIONS:
        positions[:requests] = np.minimum(positions[:requests] + 1, max_model_len - 1)
        seq_lens[:requests] = np.minimum(seq_lens[:requests] + 1, max_model_len)
