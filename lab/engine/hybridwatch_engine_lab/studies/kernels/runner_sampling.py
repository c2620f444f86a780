"""Random launches of the kernels in ``runner_kernels.sampling``."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import Draw, int32
from hybridwatch_engine_lab.studies.kernels.runner_batch import (
    ROWS,
    DrawnBatch,
    Launch,
    LaunchMakers,
)


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


def _grammar(draw: Draw) -> Launch:
    """Masks of some rows, in any order; one may be of a draft that was left out."""
    call = _sampler(draw, hot=0.0)
    counts, vocabulary = call["cu_num_logits"].diff().tolist(), call["vocab_size"]
    stride = max(counts) + 1
    places = [at * stride + k for at, n in enumerate(counts) for k in range(n + 1)]
    chosen = [places[at - 1] for at in draw.slots(draw.count(1, len(places)), len(places))]
    call |= {
        # As many as the kernel up to 0.30.0 can ask for, which takes a place for a row.
        "logits": _logits(draw, len(counts) * stride, vocabulary),
        "logits_indices": int32(chosen),
        "bitmask": call["requests"].numbers(-(2**31), 2**31 - 1, len(chosen), 2),
        "MASK_STRIDE": stride,
        "BLOCK_SIZE": 32,
    }
    return (len(chosen), -(-vocabulary // 32)), call, ("logits",)


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


LAUNCHES: Final[LaunchMakers] = {
    "temperature": _heat,
    "sample": _sample,
    "mask_by_grammar": _grammar,
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
}
