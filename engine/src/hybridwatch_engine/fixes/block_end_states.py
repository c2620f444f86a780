"""A block that speculation has filled holds the state at its end; beyond upstream."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_UTILS = "v1/worker/mamba_utils.py"


def probe(tree: SourceTree) -> Finding:
    """Look for a copy after a step of mode ``all``."""
    after = tree.function(_UTILS, "postprocess_mamba_all")
    if after is None:
        return Finding("not-applicable", f"{_UTILS} has no postprocess_mamba_all")
    copies = any(mentions(after, word) for word in ("copy_bufs", "mamba_state_copy_funcs"))
    word = "copies states" if copies else "copies no state"
    return Finding("present" if copies else "lacking", f"{_UTILS}:{after.lineno} {word}")


class _Step:
    """What the step in progress has built, group by group."""

    def __init__(self) -> None:
        self.built: list[tuple[Any, Any]] = []


def _apply() -> PatchSet:
    """Copy after each step, for all rows at once and without a look at the values.

    With asynchronous scheduling the accepted counts never pass by here, so nothing is copied.
    """
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    step = _Step()

    def forget(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            step.built = []
            return original(runner, *args, **kwargs)

        return build

    def remember(original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any) -> Any:
            final = original(builder, metadata)
            if final.block_idx_last_scheduled_token_prev_step is not None and final.num_decodes:
                step.built.append((builder, final))
            return final

        return update

    def copy(original: Callable[..., Any]) -> Callable[..., Any]:
        def update_states(runner: Any, token_ids: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(runner, token_ids, *args, **kwargs)
            if not runner.use_async_scheduling:
                accepted = (token_ids != -1).sum(dim=1)
                for builder, metadata in step.built:
                    _keep_block_ends(runner, builder, metadata, accepted)
            return answer

        return update_states

    return PatchSet(
        Patch(GPUModelRunner, "_build_attention_metadata", forget),
        Patch(
            BaseMambaAttentionMetadataBuilder, "_update_metadata_for_cudagraph_capture", remember
        ),
        Patch(GPUModelRunner, "_update_states_after_model_execute", copy),
    )


def _keep_block_ends(runner: Any, builder: Any, metadata: Any, accepted: Any) -> None:
    """Copy what lies behind the last token of each filled block to where the cache looks for it.

    A row that has filled no block is copied onto itself: choosing rows would need their values.

    Args:
        runner: vLLM's model runner.
        builder: Metadata builder of one group of Mamba layers.
        metadata: What it built for the step.
        accepted: Tokens that each request of the batch was given, shape (requests,).
    """
    import torch

    rows = min(int(metadata.num_decodes), accepted.shape[0])
    accepted = accepted[:rows].to(torch.int64)
    starts = metadata.query_start_loc_d
    before = metadata.seq_lens[:rows] - (starts[1 : rows + 1] - starts[:rows])
    size = builder.kv_cache_spec.block_size
    end = torch.div(before + accepted, size, rounding_mode="floor") * size
    filled = end > before
    token = torch.where(filled, end - before, accepted) - 1
    base = metadata.block_idx_last_scheduled_token[:rows].to(torch.int64)
    home = torch.where(filled, torch.div(end, size, rounding_mode="floor") - 1, base + token)
    table = metadata.state_indices_tensor_d[:rows].to(torch.int64)
    source = table.gather(1, (base + token).unsqueeze(1)).squeeze(1)
    target = table.gather(1, home.unsqueeze(1)).squeeze(1)
    window = table.gather(1, base.unsqueeze(1)).squeeze(1)
    layers = runner.compilation_config.static_forward_context
    for name in builder.layer_names:
        windows, states = layers[name].kv_cache[:2]
        states[target] = states[source]
        _copy_windows(windows, window, token, torch.where(filled, target, window), filled, builder)
    # Where the step began in the very block that it has filled, the copy is the only one left.
    moved = filled & (home == base)
    runner.num_accepted_tokens.gpu[:rows] = torch.where(
        moved, 1, runner.num_accepted_tokens.gpu[:rows]
    )
    counts = runner.input_batch.num_accepted_tokens_cpu_tensor
    counts[:rows].copy_(runner.num_accepted_tokens.gpu[:rows], non_blocking=True)
    runner.num_accepted_tokens_event.record()


def _copy_windows(
    windows: Any, source: Any, token: Any, target: Any, filled: Any, builder: Any
) -> None:
    """Copy the convolution's inputs behind a token to the beginning of another slot.

    Args:
        windows: Of one layer, shape (slots, inputs, channels), or the last two exchanged.
        source: Slot of each row.
        token: Token of each row behind which the inputs lie.
        target: Slot to copy to; of a row that is not filled, its own.
        filled: Whether each row has filled a block.
        builder: Knows how many drafts there are.
    """
    import torch
    from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first

    if not is_conv_state_dim_first():
        windows = windows.transpose(1, 2)
    length = windows.shape[2] - builder.num_spec_tokens
    offset = torch.where(filled, token, torch.zeros_like(token))
    places = offset.unsqueeze(1) + torch.arange(length, device=offset.device)
    inputs = windows[source].gather(2, places.unsqueeze(1).expand(-1, windows.shape[1], -1))
    windows[target, :, :length] = inputs


_OWN_STATES = [0, 1, 2, 3, 4]

FIX = Fix(
    header("block-end-states"),
    probe,
    apply=_apply,
    # Both filled blocks have the state of column 3, and inputs from places 1 and 2 of where the
    # step began; the second request continues from its copy, as if one token had been accepted.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.steps:states_at_block_ends",
        with_fix={
            "states": [[0, 3, 2, 3, 4], [0, 3, 2, 3, 4], _OWN_STATES, _OWN_STATES],
            "inputs": [[21, 22], [12, 13], [10, 11], [10, 11]],
            "accepted": [3, 1, 2, 3],
            "accepted_on_host": [3, 1, 2, 3],
        },
        without_fix={
            "states": [_OWN_STATES] * 4,
            "inputs": [[10, 11]] * 4,
            "accepted": [3, 3, 2, 3],
            "accepted_on_host": [3, 3, 2, 3],
        },
    ),
)
