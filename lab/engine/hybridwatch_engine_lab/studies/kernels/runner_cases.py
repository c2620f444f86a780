"""Random launches of the kernels of model runner V2, by the names of what stands in for them.

Arguments have the kernels' names, without a final ``_ptr``. Tables of several groups are one
tensor, groups first; ``runner_launches`` makes addresses of it.
"""

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import Draw, KernelCase, int32

ROWS, ROOM, GROUPS, WIDTH, BLOCK = 8, 48, 2, 6, 8
"""Places of requests, tokens of a batch, groups of layers, blocks of a request, tokens of one."""

Launch = tuple[tuple[int, ...], dict[str, Any], tuple[str, ...]]
"""The grid, the arguments, and the names of those that are written."""


class DrawnBatch:
    """Requests of a step: none, one or several, in any places, of any lengths."""

    def __init__(self, draw: Draw, *, absent: bool = False, least: int = 0) -> None:
        self.draw, self.requests = draw, draw.one((least, 1, draw.count(1, 5)))
        self.rows = [row - 1 for row in draw.slots(self.requests, ROWS)]
        if absent and self.rows and draw.chance(0.3):
            self.rows[-1] = -1
        self.lengths = [draw.one((1, 1, draw.count(1, 9))) for _ in self.rows]
        self.idx_mapping = int32(self.rows)
        self.starts = int32([0, *accumulate(self.lengths)])
        self.computed = self.numbers(0, 20, ROWS)
        self.lookup = {"idx_mapping": self.idx_mapping, "query_start_loc": self.starts}

    def numbers(self, least: int, most: int, *shape: int) -> Tensor:
        """Integers, both ends included."""
        count = torch.Size(shape).numel()
        return int32([self.draw.count(least, most) for _ in range(count)]).reshape(shape)

    def draw_logits(self) -> tuple[Tensor, int]:
        """Where each request's logits begin, and how many there are."""
        ends = [0, *accumulate(self.draw.count(1, length) for length in self.lengths)]
        return int32(ends), ends[-1]


def _gather(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    padded = batch.requests + draw.count(0, ROWS - batch.requests)
    tables = {
        "batch_idx_to_req_idx": batch.idx_mapping,
        "src_block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "dst_block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "block_table_strides": torch.full((GROUPS,), WIDTH),
        "num_blocks": batch.numbers(0, WIDTH, GROUPS, ROWS),
        "num_reqs": batch.requests,
        "BLOCK_SIZE": 4,
    }
    return (GROUPS, padded), tables, ("dst_block_table_ptrs",)


def _slots(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    sizes = int32([BLOCK, draw.one((1, BLOCK))])
    call = {
        **batch.lookup,
        "max_num_tokens": ROOM,
        "pos": batch.numbers(0, WIDTH * int(sizes.min()) - 1, ROOM).long(),
        "block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "block_table_strides": torch.full((GROUPS,), WIDTH),
        "block_sizes": sizes,
        "kernel_block_sizes": sizes,
        "slot_mapping_enabled": torch.tensor([True, draw.chance(0.7)]),
        "dcp_sharded": torch.tensor([True, True]),
        "slot_mappings": torch.full((GROUPS, ROOM), 7),
        "cp_rank": 0,
        "CP_SIZE": 1,
        "CP_INTERLEAVE": 1,
        "PAD_ID": -1,
        "TRITON_BLOCK_SIZE": 16,
    }
    return (GROUPS, batch.requests + 1), call, ("slot_mappings",)


def _writes(draw: Draw) -> Launch:
    batch, several = DrawnBatch(draw), draw.chance(0.5)
    ends = [0, *accumulate(draw.count(0, 3) for _ in batch.rows)]
    table = batch.numbers(1, 99, GROUPS, ROWS, WIDTH)
    call = {
        "output": table if several else table[0].clone(),
        **({"output_stride": torch.full((GROUPS,), WIDTH)} if several else {}),
        "write_indices": batch.idx_mapping,
        "write_starts": batch.numbers(0, WIDTH - 3, batch.requests),
        "write_contents": batch.numbers(1, 99, ends[-1]),
        "write_cu_lens": int32(ends[1:]),
        "write_group_ids": batch.numbers(0, 1, batch.requests) if several else None,
        "BLOCK_SIZE": 2,
        "MULTI_GROUP": several,
    }
    return (batch.requests,), call, ("output",)


def _zeros(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        "seg_addrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "seg_block_strides": torch.full((GROUPS,), WIDTH),
        "seg_page_sizes": batch.numbers(1, WIDTH, GROUPS).long(),
        "block_ids": batch.idx_mapping.long(),
        "BLOCK_SIZE": 4,
    }
    return (batch.requests, GROUPS, 2), call, ("seg_addrs",)


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


def _accepted(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    call = {
        "idx_mapping": batch.idx_mapping,
        "num_sampled": batch.numbers(0, 4, batch.requests),
        "num_accepted": batch.numbers(5, 9, ROWS),
    }
    return (batch.requests,), call, ("num_accepted",)


def _same_accepted(draw: Draw) -> Launch:
    grid, call, written = _accepted(draw)
    return grid, {**call, "num_sampled": draw.count(1, 4)}, written


def _advance(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        **batch.lookup,
        "state_idx": batch.numbers(-1, 4, ROWS),
        "num_computed_tokens": batch.computed,
        "num_accepted_tokens": batch.numbers(0, 4, ROWS),
        "src_col": batch.numbers(7, 9, ROWS),
        "src_off": batch.numbers(7, 9, ROWS),
        "num_reqs": batch.requests,
        "BLOCK_SIZE": 4,
        "MAMBA_BLOCK_SIZE": BLOCK,
    }
    written = ("state_idx", "num_accepted_tokens", "src_col", "src_off")
    return (-(-batch.requests // 4),), call, written


def _states(draw: Draw, batch: DrawnBatch) -> dict[str, Any]:
    """Caches of a convolution and of a recurrence for each group, and its tables."""
    channels, entries = 4 * draw.count(1, 3), draw.count(4, 6)
    dim_first = draw.chance(0.4)
    dtype = draw.one((torch.float32, torch.bfloat16))
    window = (channels, entries) if dim_first else (entries, channels)
    blocks = ROWS * WIDTH + 1
    return {
        "conv": draw.normal(GROUPS, blocks, *window, dtype=dtype),
        "temporal": draw.normal(GROUPS, blocks, 2, draw.count(3, 9), dtype=dtype),
        "block_table_ptrs": int32(draw.slots(ROWS * WIDTH, blocks - 1))
        .reshape(1, ROWS, WIDTH)
        .repeat(GROUPS, 1, 1),
        "idx_mapping": batch.idx_mapping if draw.chance(0.8) else None,
        "num_reqs": batch.requests,
        "COPY_BLOCK_SIZE": 16,
        "CONV_STATE_DIM_FIRST": dim_first,
    }


def _copied_before(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    sources = batch.numbers(-1, 2, ROWS)
    call = {
        **_states(draw, batch),
        "mamba_state_idx": torch.maximum(sources, int32([0])) + batch.numbers(0, 1, ROWS),
        "src_col": sources,
        "token_bias": batch.numbers(0, 3, ROWS),
    }
    call["HAS_IDX_MAPPING"] = call["idx_mapping"] is not None
    return (batch.requests, 2 * GROUPS, 1), call, ("conv", "temporal")


def _copied_after(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    accepted, told = batch.numbers(1, 4, ROWS), draw.chance(0.5)
    drafts, computed = batch.numbers(0, 3, ROWS), batch.numbers(4, 2 * BLOCK + 4, ROWS)
    scheduled = drafts + 1
    call = {
        **_states(draw, batch),
        "num_accepted_tokens": accepted,
        "mamba_state_idx": (computed + scheduled - 1) // BLOCK,
        "num_scheduled_tokens": None if told else scheduled,
        "num_draft_tokens": None if told else drafts,
        "num_computed_tokens": computed + accepted if told else computed,
        "num_accepted_tokens_out": accepted.clone(),
        "block_size": BLOCK,
        "PRECOMPUTED_NEW_COMPUTED": told,
    }
    call["HAS_IDX_MAPPING"] = call["idx_mapping"] is not None
    written = ("conv", "temporal", "num_accepted_tokens_out")
    return (batch.requests, 2 * GROUPS, 1), call, written


def _logits(draw: Draw, tokens: int, vocabulary: int) -> Tensor:
    """Logits, some of them equal, in rows that lie apart."""
    values = draw.normal(tokens, vocabulary + 3, dtype=torch.float32)
    return (values * 4).round()[:, :vocabulary]


def _sampler(draw: Draw, *, hot: float) -> dict[str, Any]:
    """Rows of logits with their requests; some have a temperature."""
    batch = DrawnBatch(draw, absent=True, least=1)
    begins, count = batch.draw_logits()
    rows = [
        row for row, n in zip(batch.rows, begins.diff().tolist(), strict=True) for _ in range(n)
    ]
    heat = [draw.one((0.5, 1.0, 0.9)) if draw.chance(hot) else 0.0 for _ in range(ROWS)]
    vocabulary = draw.one((1, 16, 33, 48))
    return {
        "expanded_idx_mapping": int32(rows),
        "expanded_local_pos": int32([p for n in begins.diff().tolist() for p in range(n)]),
        "cu_num_logits": begins,
        "temp": torch.tensor(heat),
        "seeds": torch.tensor([draw.count(-(2**62), 2**62) for _ in range(ROWS)]),
        "pos": torch.tensor([draw.count(0, 2**20) for _ in range(count)]),
        "logits": _logits(draw, count, vocabulary),
        "vocab_size": vocabulary,
        "BLOCK_SIZE": 16,
        "requests": batch,
    }


def _heat(draw: Draw) -> Launch:
    call = _sampler(draw, hot=0.7)
    call["expanded_idx_mapping"].clamp_(min=0)
    call["temperature"] = call["temp"]
    return (len(call["logits"]), -(-call["vocab_size"] // 16)), call, ("logits",)


def _sample(draw: Draw) -> Launch:
    call = _sampler(draw, hot=draw.one((0.0, 0.5, 1.0)))
    tokens, blocks = len(call["logits"]), -(-call["vocab_size"] // 16)
    cached = draw.chance(0.3)
    call |= {
        "local_argmax": torch.full((tokens, blocks), -7),
        "local_max": torch.full((tokens, blocks), -7.0),
        "logits_cache": torch.zeros(ROWS, 2, call["vocab_size"] + 2) if cached else None,
        "logits_cache_col": torch.tensor([draw.count(0, 1) for _ in range(tokens)]),
        "logits_cache_source": call["logits"] if cached else None,
        "IS_DRAFTING": draw.chance(0.3),
        "APPLY_TEMPERATURE": draw.chance(0.5),
        "USE_FP64": draw.chance(0.1),
        "PER_TOKEN_COL": True,
    }
    written = ("local_argmax", "local_max", *(("logits_cache",) if cached else ()))
    return (tokens, blocks), call, written


def _logprobs(draw: Draw) -> Launch:
    call, count = _sampler(draw, hot=0.0), draw.count(1, 4)
    tokens = len(call["logits"])
    chosen = call["requests"].numbers(0, call["vocab_size"] - 1, tokens, count).long()
    call |= {"output": torch.zeros(tokens, count), "topk_ids": chosen, "topk": count}
    return (tokens,), {**call, "TOPK_BLOCK_SIZE": 2}, ("output",)


def _ranks(draw: Draw) -> Launch:
    call = _sampler(draw, hot=0.0)
    tokens = len(call["logits"])
    chosen = call["requests"].numbers(0, call["vocab_size"] - 1, tokens).long()
    call |= {"output": torch.zeros(tokens, dtype=torch.int64), "token_ids": chosen}
    return (tokens,), call, ("output",)


def _verification(draw: Draw) -> dict[str, Any]:
    """Drafts of greedy requests, most of them the likely token, and what is made of them."""
    call = _sampler(draw, hot=draw.one((0.0, 0.0, 0.0, 0.3)))
    call["expanded_idx_mapping"].clamp_(min=0)
    tokens, blocks = len(call["logits"]), -(-call["vocab_size"] // 16)
    requests = call["requests"].requests
    likely = call["requests"].numbers(0, 9, tokens, blocks).long()
    drafts = likely[:, 0].roll(1)
    wrong = torch.tensor([draw.chance(0.4) for _ in range(tokens)])
    steps = call["cu_num_logits"].diff()
    return {
        **call,
        "idx_mapping": call["requests"].idx_mapping.clamp(min=0),
        "target_logits": call["logits"],
        "num_speculative_steps": int(steps.max()) - 1,
        "target_local_argmax": likely,
        "target_local_max": draw.normal(tokens, blocks, dtype=torch.float32),
        **{f"{name}_local_sumexp": torch.ones(tokens, blocks) for name in ("target", "draft")},
        "draft_local_max": torch.ones(tokens, blocks),
        "draft_sampled": torch.where(wrong, draw.one((-1, 3)), drafts),
        "sampled": torch.full((requests, 10), -7),
        "rejected_steps": torch.full((requests,), -7),
        "rejected_step": torch.tensor([draw.one((0, n - 1)) for n in steps.tolist()]),
        "num_sampled": torch.tensor([draw.one((0, n - 1)) for n in steps.tolist()]).int(),
        "target_rejected_logsumexp": torch.ones(requests),
        "draft_rejected_logsumexp": torch.ones(requests),
        "resampled_local_argmax": call["requests"].numbers(100, 199, requests, blocks).long(),
        "resampled_local_max": draw.normal(requests, blocks, dtype=torch.float32),
        "resample_num_blocks": blocks,
        "vocab_num_blocks": blocks,
        "seed": call["seeds"],
        "PADDED_VOCAB_NUM_BLOCKS": 4,
        "PADDED_RESAMPLE_NUM_BLOCKS": 4,
        "CONTEXT_WIDTH": 1,
    }


def _of_verification(*written: str, by: str) -> Callable[[Draw], Launch]:
    def drawn(draw: Draw) -> Launch:
        call = _verification(draw)
        tokens, blocks = call["target_local_argmax"].shape
        requests = len(call["sampled"])
        grids = {"token": (tokens, blocks), "request": (requests,), "block": (requests, blocks)}
        return grids[by], call, written

    return drawn


def _flat(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    begins, count = batch.draw_logits()
    call = {
        "flat_sampled": torch.full((count,), -7),
        "sampled": batch.numbers(0, 99, batch.requests, 10).long(),
        "num_sampled": int32([draw.count(0, n) for n in begins.diff().tolist()]),
        "cu_num_logits": begins,
    }
    return (batch.requests,), call, ("flat_sampled",)


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


DRAWN: Final[Mapping[str, Callable[[Draw], Launch]]] = {
    "gather_block_tables": _gather,
    "slot_mappings": _slots,
    "apply_writes": _writes,
    "zero_blocks": _zeros,
    "prefill_inputs": _prefill,
    "positions_and_lengths": _positions,
    "combine_tokens": _combine,
    "sampled_and_rejected": _counts,
    "after_step": _after,
    "computed_after_step": _computed,
    "expand_rows": _expand,
    "scatter_accepted": _accepted,
    "fill_accepted": _same_accepted,
    "advance_blocks": _advance,
    "copy_before_step": _copied_before,
    "copy_after_step": _copied_after,
    "temperature": _heat,
    "sample": _sample,
    "logprobs": _logprobs,
    "ranks": _ranks,
    "logit_statistics": _of_verification(
        "target_local_argmax", "target_local_max", "target_local_sumexp", by="token"
    ),
    "verify": _of_verification(
        "sampled", "rejected_steps", "target_rejected_logsumexp", by="request"
    ),
    "resample": _of_verification("resampled_local_argmax", "resampled_local_max", by="block"),
    "insert_resampled": _of_verification("sampled", "num_sampled", by="request"),
    "flatten_sampled": _flat,
    "gather_drafts": _gathered,
    "scan_ngrams": _ngrams,
    "propose_ngrams": _proposed,
    "first_draft_inputs": _first_draft,
    "second_draft_inputs": _second_draft,
    "next_draft_inputs": _next_draft,
}
"""A way to draw a launch for each stand-in."""


def draw_launch(name: str, number: int, seed: int) -> KernelCase:
    """The launch of this number; the same in any process."""
    dtype = (torch.float32, torch.bfloat16)[number % 2]
    grid, call, written = DRAWN[name](Draw(seed * 1_000_003 + number, dtype))
    nothing = torch.zeros(0, dtype=torch.bool)
    return KernelCase(name, "", {**call, "grid": grid}, str(dtype), written, "", nothing)
