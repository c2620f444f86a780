"""Mutants of model runner V2: its tables, the batch it lays out, its states, drafts and graphs."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ
from hybridwatch_engine.replays import captured_metadata, is_of_target


def rows_swapped(original: Callable[..., Any], tally: Tally, *, group: int) -> Callable[..., Any]:
    """Swap the first two rows of the block table of one cache group."""

    def gather(tables: Any, requests: Any, *args: Any, **kwargs: Any) -> Any:
        gathered = original(tables, requests, *args, **kwargs)
        if requests.shape[0] > 1 and len(tables.input_block_tables) > group:
            table = tables.input_block_tables[group]
            tally.count(changed=differ(table[0], table[1]))
            table[:2] = table[:2].flip(0)
        return gathered

    return gather


def append_short(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let the last block that a running request gets be the null block in its row."""

    def append(tables: Any, row: int, blocks: Any, overwrite: bool) -> None:
        if not overwrite and any(blocks):
            tally.count(changed=True)
            blocks = tuple([*group[:-1], 0] if group else group for group in blocks)
        original(tables, row, blocks, overwrite)

    return append


def keys_one_early(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Keep the key and value of each token where those of the one before it belong."""

    def slot_mappings(
        tables: Any, requests: Any, starts: Any, positions: Any, *args: Any, **kwargs: Any
    ) -> Any:
        wrong = (positions - 1).clamp(min=0)
        tally.count(changed=differ(wrong, positions))
        return original(tables, requests, starts, wrong, *args, **kwargs)

    return slot_mappings


def lengths(original: Callable[..., Any], tally: Tally, *, plus: int) -> Callable[..., Any]:
    """Say of every sequence in a batch that it is longer, or shorter, than it is."""

    def positions_and_lengths(requests: Any, starts: Any, done: Any, pos: Any, to: Any) -> None:
        original(requests, starts, done, pos, to)
        rows = requests.shape[0]
        tally.count(changed=rows > 0)
        to[:rows] = (to[:rows] + plus).clamp(min=1)

    return positions_and_lengths


def accepted_kept(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let a new request begin with the count of accepted tokens of the one before it."""

    def add_request(state: Any, row: int, request: Any) -> None:
        before = state.num_accepted_tokens_gpu[row].clone()
        original(state, row, request)
        tally.count(changed=differ(before, state.num_accepted_tokens_gpu[row]))
        state.num_accepted_tokens_gpu[row] = before

    return add_request


def accepted_rotated(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Give each row the count of accepted tokens of its neighbour."""

    def arguments(metadata: Any, builder: Any, rows: int) -> Any:
        given = dict(original(metadata, builder, rows))
        counts = given.get("num_accepted_tokens")
        if counts is not None and rows > 1:
            given["num_accepted_tokens"] = counts.roll(1, dims=0)
            tally.count(changed=differ(counts, given["num_accepted_tokens"]))
        return given

    return arguments


def accepted_one(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Keep of every step that it took no draft."""

    def postprocess(state: Any, requests: Any, sampled: Any, *args: Any, **kwargs: Any) -> None:
        wrong = 1 if isinstance(sampled, int) else sampled.clamp(max=1)
        tally.count(changed=not isinstance(sampled, int) and differ(wrong, sampled))
        original(state, requests, wrong, *args, **kwargs)

    return postprocess


def never_prefilling(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Mark no row as computing a prompt."""

    def arguments(metadata: Any, group: int, rows: int) -> Any:
        given = original(metadata, group, rows)
        flags = given["is_prefilling"]
        tally.count(changed=bool(flags.any()))
        return {**given, "is_prefilling": flags.new_zeros(flags.shape)}

    return arguments


def resumed_elsewhere(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Under ``align``, let a prompt go on from the block before the one where its prefix ends."""

    def add_request(state: Any, row: int, request: Any) -> None:
        original(state, row, request)
        if request.num_computed_tokens > 0 and hasattr(state, "_mamba_state_idx_gpu"):
            before = state._mamba_state_idx_gpu[row].clone()  # noqa: SLF001
            state._mamba_state_idx_gpu[row] = (before - 1).clamp(min=0)  # noqa: SLF001
            tally.count(changed=bool(before > 0))

    return add_request


def not_copied(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Under ``align``, leave the state behind where a request goes on in another block."""
    del original

    def precopy(_: Any, rows: int, __: Any, source: Any, *___: Any) -> None:
        tally.count(changed=bool((source[:rows] >= 0).any()))

    return precopy


def sampled_by_neighbour(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Go on from the token that the neighbouring request was given."""

    def combine(tokens: Any, requests: Any, sampled: Any, *args: Any, **kwargs: Any) -> Any:
        wrong = sampled.roll(1, dims=0)
        tally.count(changed=differ(wrong, sampled))
        return original(tokens, requests, wrong, *args, **kwargs)

    return combine


def not_zeroed(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave in new blocks what they held."""

    def update_requests(runner: Any, output: Any) -> None:
        tally.count(changed=bool(output.new_block_ids_to_zero))
        output.new_block_ids_to_zero = None
        original(runner, output)

    return update_requests


def rejected_kept(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Count rejected drafts as computed."""

    def post_update(*args: Any) -> None:
        rejected = args[6]
        tally.count(changed=bool(rejected.any()))
        original(*args[:6], rejected.new_zeros(rejected.shape), *args[7:])

    return post_update


def larger_graph(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Replay the graph of the next larger batch; its further rows hold what an older batch left."""

    def run_fullgraph(manager: Any, shape: Any) -> Any:
        like = (shape.uniform_token_count, shape.num_active_loras)
        larger = [
            other
            for other in manager.graphs
            if other.num_tokens > shape.num_tokens
            and (other.uniform_token_count, other.num_active_loras) == like
        ]
        if not larger:
            return original(manager, shape)
        tally.count(changed=True)
        graphs = manager.graphs
        wrong = min(larger, key=lambda other: other.num_tokens)
        manager.graphs = {**graphs, shape: graphs[wrong]}
        try:
            return original(manager, shape)
        finally:
            manager.graphs = graphs

    return run_fullgraph


def draft_lengths_kept(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Have the graphs of drafts read lengths as they were captured, which the host never writes."""
    captured: dict[int, Any] = {}

    def run_fullgraph(manager: Any, shape: Any) -> Any:
        if not is_of_target(manager):
            for built in captured_metadata(manager, shape).values():
                if id(built) not in captured:
                    captured[id(built)] = built, built.seq_lens
                    built.seq_lens = built.seq_lens.new_ones(built.seq_lens.shape)
                tally.count(changed=differ(built.seq_lens, captured[id(built)][1]))
        return original(manager, shape)

    return run_fullgraph


def drafts_of_neighbour(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Verify the drafts that were made for the neighbouring request."""

    def combine(*args: Any, **kwargs: Any) -> Any:
        drafts, rows = args[6], args[1]
        wrong = drafts.roll(1, dims=0)
        tally.count(changed=differ(wrong[rows], drafts[rows]))
        return original(*args[:6], wrong, *args[7:], **kwargs)

    return combine


def chunk_sampled(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Count what is sampled at the end of a chunk as a token of the answer."""

    def sampled_and_rejected(sampled: Any, lengths: Any, logits: Any, rows: Any, whole: Any) -> Any:
        tally.count(changed=bool((lengths[: rows.shape[0]] < whole[rows]).any()))
        return original(sampled, lengths, logits, rows, whole.new_zeros(whole.shape))

    return sampled_and_rejected


def accepted_twice(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Say the last token of a step twice where a draft was rejected."""

    def rejection_sample(*args: Any, **kwargs: Any) -> Any:
        sampled, counts = original(*args, **kwargs)
        short = (counts < sampled.shape[1]).nonzero().flatten()
        tally.count(changed=bool(short.numel()))
        said = counts[short].long()
        sampled[short, said] = sampled[short, said - 1]
        counts[short] += 1
        return sampled, counts

    return rejection_sample
