"""Drafts (``v1/worker/gpu/spec_decode``): ngram, and heads that draft one token after the other."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hybridwatch_engine.cpu.runner_kernels.launch import Array, flat, real, stands_in_for


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

    It is told by one number: length x (L + 1) + place + 1.
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
    """What followed that occurrence, and the last token where nothing did."""
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
    """A head's inputs for the draft after the one that it has made."""
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
