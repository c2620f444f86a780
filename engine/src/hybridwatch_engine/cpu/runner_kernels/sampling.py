"""Sampling and logprobs (``v1/worker/gpu/sample``), and the verification of greedy drafts.

Noise is drawn as in ``gumbel.py`` of 0.31.0 and later, operation by operation in 32 bits, so that
seeded requests get the tokens that the interpreter gives them. Drafts of requests with a
temperature are left to the interpreter, and so are logits that are no numbers.
"""

from typing import Any

import numpy as np

from hybridwatch_engine.cpu.runner_kernels.launch import Array, UnservedError, stands_in_for

_DRAFT_SALT = 1 << 30
"""Added to a position when a draft is sampled (``_DRAFT_NOISE_SALT``)."""


@stands_in_for("88dfbee4")
def temperature(
    *,
    logits: Any,
    expanded_idx_mapping: Array,
    temperature: Array,
    vocab_size: int,
    grid: tuple[int, int],
    **_: Any,
) -> None:
    """Divide logits by the temperatures of their requests."""
    values = temperature[expanded_idx_mapping[: grid[0]]].astype(np.float32)
    if not isinstance(logits, np.ndarray) or (expanded_idx_mapping[: grid[0]] < 0).any():
        raise UnservedError
    for row in np.flatnonzero((values != 0) & (values != 1)).tolist():
        logits[row, :vocab_size] = logits[row, :vocab_size].astype(np.float32) / values[row]


@stands_in_for("371f199f", "df921179", draws=True)
@stands_in_for("9c9f7204", "b1864982", "bc8e92d8", draws=False)
def sample(
    *,
    local_argmax: Array,
    local_max: Array,
    logits: Any,
    expanded_idx_mapping: Array,
    seeds: Array,
    pos: Array,
    temp: Array,
    vocab_size: int,
    draws: bool,
    grid: tuple[int, int],
    processed_logits: Any = None,
    **more: Any,
) -> None:
    """The most likely token of each block of the vocabulary, with Gumbel noise for sampling.

    A kernel that ``draws`` has our noise; those up to 0.30.0 have another.
    """
    tokens, cache = grid[0], more.get("logits_cache")
    if more["USE_FP64"] or processed_logits is not None:
        raise UnservedError
    rows = expanded_idx_mapping[:tokens].astype(np.int64)
    known = rows >= 0
    heat = np.where(known, temp[rows], 0).astype(np.float32)[:, None]
    hot = np.flatnonzero(heat)
    if not draws and (len(hot) or cache is not None):
        raise UnservedError
    values = _numbers(logits)[:tokens, :vocab_size]
    source = more.get("logits_cache_source")
    kept = values if source is None else _numbers(source)[:tokens, :vocab_size]
    if len(hot):
        values = values.copy()
        if more["APPLY_TEMPERATURE"]:
            values[hot] /= heat[hot]
        places = pos[hot].astype(np.int64) + (_DRAFT_SALT if more["IS_DRAFTING"] else 0)
        seed = np.where(known, seeds[rows], 0)[hot]
        values[hot] += _gumbel(seed[:, None], places[:, None], vocab_size)
    best, places_of_best = _blocks(values, grid[1], more["BLOCK_SIZE"])
    if isinstance(cache, np.ndarray):
        column = more["logits_cache_col"]
        columns = np.broadcast_to(column.reshape(-1), tokens)
        cache[rows[known], columns[known], :vocab_size] = kept[known]
    elif cache is not None:
        raise UnservedError
    local_max[:tokens], local_argmax[:tokens] = best, places_of_best


def _numbers(logits: Any) -> Array:
    """Logits in 32 bits."""
    values: Array = logits if isinstance(logits, np.ndarray) else logits.float().numpy()
    return values.astype(np.float32, copy=False)


def _blocks(values: Array, blocks: int, size: int) -> tuple[Array, Array]:
    """The largest value of each block of each row, and its place in the row.

    Raises:
        UnservedError: A value is no number.
    """
    tokens, vocabulary = values.shape
    best = np.full((tokens, blocks), -np.inf, np.float32)
    places = np.empty((tokens, blocks), np.int64)
    for block in range(blocks):
        part = values[:, block * size : min((block + 1) * size, vocabulary)]
        places[:, block] = part.argmax(axis=1) + block * size
        best[:, block] = part.max(axis=1)
    if np.isnan(best).any():
        raise UnservedError
    return best, places


def _gumbel(seeds: Array, positions: Array, count: int) -> Array:
    """Noise of tokens 0 to ``count`` of each position's stream."""
    numbers = _murmur3(seeds, positions, np.arange(count, dtype=np.uint32)[None, :])
    high, low = numbers >> 16, numbers & 0xFFFF
    uniform = high.astype(np.float32) * np.float32(2**-16)
    uniform += (low.astype(np.float32) + np.float32(0.5)) * np.float32(2**-32)
    # The logarithm of 1 - u as the kernel takes it: by a series for small u.
    series = np.full_like(uniform, 1 / 8)
    for place in range(7, 0, -1):
        series = np.float32(1 / place) + uniform * series
    direct = np.log(np.maximum(np.float32(1) - uniform, np.float32(2**-24)))
    logarithm = np.where(uniform < np.float32(0.25), -uniform * series, direct)
    return -np.log(-logarithm)


def _murmur3(seeds: Array, positions: Array, tokens: Array) -> Array:
    """MurmurHash3 (32 bits) of both halves of the seed, the position and the token."""
    parts = seeds & 0xFFFFFFFF, seeds >> 32 & 0xFFFFFFFF, positions & 0xFFFFFFFF, tokens
    hashes = np.zeros((1, 1), np.uint32)
    for part in parts:
        key = _rotated(part.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        hashes = _rotated(hashes ^ key, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashes ^= np.uint32(16)  # bytes hashed
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ hashes >> np.uint32(shift)) * np.uint32(factor)
    return hashes ^ hashes >> np.uint32(16)


def _rotated(values: Array, places: int) -> Array:
    return values << np.uint32(places) | values >> np.uint32(32 - places)


@stands_in_for("138682b0", "ef52b126")
def mask_by_grammar(
    *,
    logits: Any,
    logits_indices: Array,
    bitmask: Array,
    vocab_size: int,
    grid: tuple[int, int],
    cu_num_logits: Array | None = None,
    **more: Any,
) -> None:
    """Shut out what a grammar refuses, in the rows of logits that have a mask.

    A row goes by its number, from 0.31.0 on by request and place among that one's logits.
    """
    if not isinstance(logits, np.ndarray):
        raise UnservedError
    masks = np.ascontiguousarray(bitmask[: grid[0]]).view(np.uint8)
    refused = np.unpackbits(masks, axis=1, bitorder="little")[:, :vocab_size] == 0
    rows = logits_indices[: grid[0]].astype(np.int64)
    if cu_num_logits is not None:
        requests, places = np.divmod(rows, more["MASK_STRIDE"])
        rows = cu_num_logits[requests] + places
        there = rows < cu_num_logits[requests + 1]
        rows, refused = rows[there], refused[there]
    for row, tokens in zip(rows.tolist(), refused, strict=True):
        logits[row, :vocab_size][tokens] = -np.inf


@stands_in_for("4d92b685", "62df4614")
def logprobs(
    *,
    output: Array,
    logits: Any,
    topk_ids: Array,
    topk: int,
    vocab_size: int,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Logprobs of some tokens."""
    values = _numbers(logits)[: grid[0], :vocab_size]
    largest = values.max(axis=1, keepdims=True)
    if np.isnan(largest).any():
        raise UnservedError
    scale = np.log(np.exp(values - largest).sum(axis=1, keepdims=True))
    chosen = np.take_along_axis(values, topk_ids[: grid[0], :topk].astype(np.int64), axis=1)
    output[: grid[0], :topk] = chosen - largest - scale


@stands_in_for("21179d40")
def ranks(
    *, output: Array, logits: Any, token_ids: Array, vocab_size: int, grid: tuple[int], **_: Any
) -> None:
    """How many tokens are as likely as the given one or more."""
    values = _numbers(logits)[: grid[0], :vocab_size]
    own = np.take_along_axis(values, token_ids[: grid[0], None].astype(np.int64), axis=1)
    output[: grid[0]] = (values >= own).sum(axis=1)


@stands_in_for("67ae7ea6", "ecfcf759")
def logit_statistics(
    *,
    target_local_argmax: Array,
    target_local_max: Array,
    target_logits: Any,
    expanded_idx_mapping: Array,
    expanded_local_pos: Array,
    temp: Array,
    vocab_size: int,
    num_speculative_steps: int,
    BLOCK_SIZE: int,  # noqa: N803 - the kernel's name
    grid: tuple[int, int],
    **_: Any,
) -> None:
    """The most likely token of each block where a draft is verified."""
    verified = np.flatnonzero(expanded_local_pos[: grid[0]] < num_speculative_steps)
    _greedy(temp[expanded_idx_mapping[: grid[0]]])
    best, places = _blocks(_numbers(target_logits)[verified, :vocab_size], grid[1], BLOCK_SIZE)
    target_local_max[verified], target_local_argmax[verified] = best, places


def _greedy(heat: Array) -> None:
    """Refuse requests with a temperature.

    Raises:
        UnservedError: There is one.
    """
    if heat.any():
        raise UnservedError


@stands_in_for("b08b20f8", "133aab90")
def verify(
    *,
    sampled: Array,
    rejected_steps: Array,
    target_rejected_logsumexp: Array,
    draft_rejected_logsumexp: Array,
    target_local_argmax: Array,
    target_local_max: Array,
    draft_sampled: Array,
    cu_num_logits: Array,
    idx_mapping: Array,
    temp: Array,
    SYNTHETIC_MODE: bool,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    **_: Any,
) -> None:
    """Accept drafts as long as they are the most likely tokens."""
    (requests,) = grid
    _greedy(temp[idx_mapping[:requests]])
    drafted = np.delete(target_local_max, cu_num_logits[1 : requests + 1] - 1, axis=0)
    if SYNTHETIC_MODE or np.isnan(drafted).any():
        raise UnservedError
    likely = np.take_along_axis(target_local_argmax, target_local_max.argmax(axis=1)[:, None], 1)
    for request in range(requests):
        first, after = int(cu_num_logits[request]), int(cu_num_logits[request + 1])
        expected, drafts = likely[first : after - 1, 0], draft_sampled[first + 1 : after]
        accepted = int((expected == drafts).cumprod().sum())
        # The token that was likely instead of the first rejected draft is kept as well.
        sampled[request, : accepted + 1][: len(expected)] = expected[: accepted + 1]
        rejected_steps[request] = accepted
    target_rejected_logsumexp[:requests] = draft_rejected_logsumexp[:requests] = 0


@stands_in_for("4b8323c0", "a03f17ea", "adaed729", "9ca7ca08", "314501bf", "40681455")
def resample(
    *,
    resampled_local_argmax: Array,
    resampled_local_max: Array,
    target_logits: Any,
    rejected_step: Array,
    cu_num_logits: Array,
    expanded_idx_mapping: Array,
    temp: Array,
    vocab_size: int,
    BLOCK_SIZE: int,  # noqa: N803 - the kernel's name
    grid: tuple[int, int],
    **_: Any,
) -> None:
    """The most likely token after drafts that were all accepted."""
    rows = cu_num_logits[: grid[0]] + rejected_step[: grid[0]]
    _greedy(temp[expanded_idx_mapping[rows]])
    last = np.flatnonzero(rows == cu_num_logits[1 : grid[0] + 1] - 1)
    values = _numbers(target_logits)[rows[last], :vocab_size]
    best, places = _blocks(values, grid[1], BLOCK_SIZE)
    resampled_local_max[last], resampled_local_argmax[last] = best, places


@stands_in_for("f64fff1c", "87d21125")
def insert_resampled(
    *,
    sampled: Array,
    num_sampled: Array,
    resampled_local_argmax: Array,
    resampled_local_max: Array,
    resample_num_blocks: int,
    cu_num_logits: Array,
    expanded_idx_mapping: Array,
    temp: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """What was sampled goes behind the accepted drafts; greedy requests have theirs already."""
    (requests,) = grid
    accepted = num_sampled[:requests].copy()
    rows = cu_num_logits[:requests] + accepted
    last = rows == cu_num_logits[1 : requests + 1] - 1
    chosen = np.flatnonzero(last | (temp[expanded_idx_mapping[rows]] != 0))
    best = resampled_local_max[chosen, :resample_num_blocks]
    if np.isnan(best).any():
        raise UnservedError
    blocks = best.argmax(axis=1)
    sampled[chosen, accepted[chosen]] = resampled_local_argmax[chosen, blocks]
    num_sampled[:requests] = accepted + 1


@stands_in_for("b0469ffe")
def flatten_sampled(
    *,
    flat_sampled: Array,
    sampled: Array,
    num_sampled: Array,
    cu_num_logits: Array,
    grid: tuple[int],
    **_: Any,
) -> None:
    """Sampled tokens of all requests, each from its first row of logits on."""
    for request in range(grid[0]):
        first, count = int(cu_num_logits[request]), int(num_sampled[request])
        flat_sampled[first : first + count] = sampled[request, :count]
