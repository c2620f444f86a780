"""Random launches of the kernels in ``runner_kernels.drafts``: a step's inputs, and drafts."""

from typing import Final

import torch

from hybridwatch_engine_lab.studies.kernels.draw import Draw, int32
from hybridwatch_engine_lab.studies.kernels.runner_batch import (
    ROOM,
    ROWS,
    DrawnBatch,
    Launch,
    LaunchMakers,
)


def _prefill(draw: Draw) -> Launch:
    batch, ahead = DrawnBatch(draw), draw.count(1, 3)
    call = {
        **batch.lookup,
        "input_ids": batch.numbers(1, 99, ROOM),
        "next_prefill_tokens": batch.numbers(1, 99, ahead, ROWS),
        "num_lookahead": ahead,
        "all_token_ids": batch.numbers(1, 99, ROWS, 2 * ROOM),
        "prefill_lens": batch.numbers(0, 40, ROWS),
        "num_computed_tokens": batch.computed,
        "BLOCK_SIZE": 4,
        "LOOKAHEAD_BLOCK": 4,
    }
    return (batch.requests,), call, ("input_ids", "next_prefill_tokens")


def _positions(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        **batch.lookup,
        "pos": torch.full((ROOM,), 7),
        "seq_lens": batch.numbers(1, 99, ROWS),
        "num_computed_tokens": batch.computed,
        "max_num_reqs": ROWS,
        "BLOCK_SIZE": 4,
    }
    return (batch.requests + 1,), call, ("pos", "seq_lens")


def _combine(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    begins, count = batch.draw_logits()
    call = {
        **batch.lookup,
        "input_ids": batch.numbers(1, 99, ROOM),
        "last_sampled_tokens": batch.numbers(100, 199, ROWS, 1).long(),
        "seq_lens": batch.numbers(1, 30, ROWS),
        "prefill_len": batch.numbers(1, 30, ROWS),
        "draft_tokens": batch.numbers(200, 299, ROWS, 9).long(),
        "cu_num_logits": begins,
        "logits_indices": torch.full((count,), -7),
        "BLOCK_SIZE": 16,
        "NUM_NEW_SAMPLED_TOKENS": draw.one((1, 1, 0)),
    }
    return (batch.requests,), call, ("input_ids", "logits_indices")


def _counts(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        "idx_mapping": batch.idx_mapping,
        "num_sampled": batch.numbers(0, 4, batch.requests),
        "num_rejected": batch.numbers(5, 9, batch.requests),
        "seq_lens": batch.numbers(1, 30, ROWS),
        "cu_num_logits": batch.draw_logits()[0],
        "prefill_len": batch.numbers(1, 30, ROWS),
    }
    return (batch.requests,), call, ("num_sampled", "num_rejected")


def _after(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    counted = draw.chance(0.5)
    call = {
        **batch.lookup,
        "query_start_loc": batch.starts if draw.chance(0.8) else None,
        "num_computed_tokens": batch.computed,
        "last_sampled_tokens": batch.numbers(1, 99, ROWS, 1).long(),
        "output_bin_counts": batch.numbers(0, 3, ROWS, 30) if counted else None,
        "sampled_tokens": batch.numbers(0, 29, batch.requests, 4).long(),
        "num_sampled": batch.numbers(0, 4, batch.requests),
        "num_rejected": batch.numbers(0, 3, batch.requests),
        "all_token_ids": batch.numbers(1, 99, ROWS, 40),
        "total_len": batch.numbers(0, 36, ROWS),
    }
    written = ("num_computed_tokens", "last_sampled_tokens", "all_token_ids", "total_len")
    return (batch.requests,), call, (*written, *(("output_bin_counts",) if counted else ()))


def _computed(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {**batch.lookup, "num_computed_tokens": batch.computed}
    return (batch.requests,), call, ("num_computed_tokens",)


def _expand(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    begins, count = batch.draw_logits()
    call = {
        "idx_mapping": batch.idx_mapping,
        "expanded_idx_mapping": torch.full((count,), 77, dtype=torch.int32),
        "expanded_local_pos": torch.full((count,), 77, dtype=torch.int32),
        "cu_num_logits": begins,
        "BLOCK_SIZE": 16,
    }
    return (batch.requests,), call, ("expanded_idx_mapping", "expanded_local_pos")


def _gathered(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    begins, count = batch.draw_logits()
    rows = [
        row for row, n in zip(batch.rows, begins.diff().tolist(), strict=True) for _ in range(n)
    ]
    call = {
        "draft_sampled": torch.full((count,), 77, dtype=torch.int32),
        "pos": torch.full((count,), 77),
        "input_ids": batch.numbers(1, 99, ROOM),
        "positions": batch.numbers(0, 30, ROOM).long(),
        "logits_indices": batch.numbers(0, ROOM - 1, count).long(),
        "expanded_idx_mapping": int32(rows),
        "expanded_local_pos": int32([p for n in begins.diff().tolist() for p in range(n)]),
        "prefill_len": batch.numbers(1, 30, ROWS),
        "num_logits": count,
        "BLOCK_SIZE": 16,
    }
    return (-(-count // 16),), call, ("draft_sampled", "pos")


def _ngrams(draw: Draw) -> Launch:
    batch, blocks = DrawnBatch(draw), 4
    least = draw.count(1, 2)
    call = {
        "token_ids": batch.numbers(1, 3, ROWS, 16 * blocks),
        "idx_mapping": batch.idx_mapping.long(),
        "total_len": int32([draw.one((1, 2, 16, draw.count(1, 60))) for _ in range(ROWS)]),
        "num_sampled": batch.numbers(0, 2, batch.requests),
        "scratch": torch.full((ROWS, blocks), 77),
        "L": 64,
        "MIN_N": least,
        "MAX_N": least + draw.count(0, 3),
        "MAX_N_PO2": 8,
        "BLOCK_L": 16,
    }
    return (batch.requests, blocks), call, ("scratch",)


def _proposed(draw: Draw) -> Launch:
    (requests, blocks), call, _ = _ngrams(draw)
    scores = [draw.one((0, n * 65 + draw.count(1, 50))) for n in range(1, 1 + ROWS * blocks)]
    call |= {
        "scratch": torch.tensor(scores).reshape(ROWS, blocks) % (3 * 65),
        "last_sampled": torch.arange(100, 100 + ROWS),
        "drafts": torch.full((ROWS, 3), -7),
        "N_BLOCKS": blocks,
        "K": 3,
        "K_PO2": 4,
        "N_BLOCKS_PO2": 4,
    }
    return (requests,), call, ("drafts",)


def _first_draft(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, least=1)
    call = {
        **batch.lookup,
        "last_token_indices": batch.numbers(7, 9, ROWS).long(),
        "draft_current_step": torch.tensor(5),
        "draft_input_ids": batch.numbers(1, 99, ROOM),
        "draft_positions": batch.numbers(1, 99, ROOM).long(),
        "draft_query_start_loc": batch.numbers(1, 99, ROWS + 1),
        "draft_seq_lens": batch.numbers(1, 99, ROWS),
        "target_input_ids": batch.numbers(100, 199, ROOM),
        "target_positions": batch.numbers(100, 199, ROOM).long(),
        "last_sampled": batch.numbers(200, 299, ROWS).long(),
        "next_prefill_tokens": batch.numbers(300, 399, ROWS),
        "num_sampled": batch.numbers(0, 2, batch.requests),
        "num_rejected": int32([draw.count(0, n - 1) for n in batch.lengths]),
        "seq_lens": batch.numbers(1, 99, ROWS),
        "max_num_reqs": ROWS,
        "BLOCK_SIZE": 4,
    }
    written = tuple(name for name in call if name.startswith(("draft_", "last_token")))
    return (batch.requests,), call, written


def _second_draft(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        "draft_tokens": batch.numbers(100, 199, ROWS, 3).long(),
        "target_seq_lens": batch.numbers(10, 30, ROWS),
        "num_rejected": batch.numbers(0, 3, batch.requests),
        "input_ids": batch.numbers(1, 99, ROOM),
        "positions": batch.numbers(1, 29, ROOM).long(),
        "sample_src_positions": batch.numbers(1, 99, ROWS).long(),
        "query_start_loc": batch.numbers(1, 99, ROWS + 1),
        "seq_lens": batch.numbers(1, 30, ROWS),
        "max_model_len": 30,
        "max_num_reqs": ROWS,
        "BLOCK_SIZE": 4,
        "ADVANCE_DRAFT_POSITIONS": draw.chance(0.7),
    }
    written = ("input_ids", "positions", "query_start_loc", "seq_lens", "sample_src_positions")
    return (batch.requests + 1,), call, written


def _next_draft(draw: Draw) -> Launch:
    (programs,), call, _ = _second_draft(draw)
    batch, requests, steps = DrawnBatch(draw), programs - 1, 3
    call |= {
        "output_draft_tokens": batch.numbers(1, 99, ROWS, steps).long(),
        "next_input_hidden_states": torch.zeros(ROOM, 10, dtype=draw.dtype),
        "draft_tokens": batch.numbers(200, 299, ROWS).long(),
        "current_draft_step": torch.tensor(draw.count(0, steps - 1)),
        "hidden_states": draw.normal(ROOM, 12)[:, :10],
        "hidden_size": 10,
        "num_speculative_steps": steps,
    }
    written = ("output_draft_tokens", "next_input_hidden_states", "input_ids", "positions")
    return (requests,), call, (*written, "seq_lens", "sample_src_positions")


LAUNCHES: Final[LaunchMakers] = {
    "prefill_inputs": _prefill,
    "positions_and_lengths": _positions,
    "combine_tokens": _combine,
    "sampled_and_rejected": _counts,
    "after_step": _after,
    "computed_after_step": _computed,
    "expand_rows": _expand,
    "gather_drafts": _gathered,
    "scan_ngrams": _ngrams,
    "propose_ngrams": _proposed,
    "first_draft_inputs": _first_draft,
    "second_draft_inputs": _second_draft,
    "next_draft_inputs": _next_draft,
}
