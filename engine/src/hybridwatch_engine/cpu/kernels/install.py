"""Patches vLLM to use these kernels for calls that its compiled kernels serve wrong or not at all.

So an engine without ``all`` mode and without speculation runs on the kernels of its release, except
for layers of Mamba1, for which it has none. Two sets, since the state update of speculation is a
fix that can be switched. ``causal_conv1d_fn`` and ``causal_conv1d_update`` are bound by name in the
mixer as well as where they are defined; the state update is patched in the dispatcher's CPU
backend.

Written for 0.27.1. A name that a release lacks is left out: up to 0.23.0 there is no CPU backend of
the state update. 0.32.0 has no ``all`` mode, and so no calls with its arguments; speculation and
``align`` copies are as before; new are states that are stored amid a prompt.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from hybridwatch_engine.cpu.kernels import (
    align,
    checkpoint,
    chunk_scan,
    convolution,
    selective_scan,
    state_update,
)
from hybridwatch_engine.cpu.kernels.slots import Ending, column_slots, move_states
from hybridwatch_engine.patch import Patch, PatchSet

_OPS = "vllm.model_executor.layers.mamba.ops"
_MIXER = "vllm.model_executor.layers.mamba.mamba_mixer2"


def _conv_update(original: Callable[..., Any]) -> Callable[..., Any]:
    """Serve calls with accepted counts here, and others by the compiled kernel after moving states.

    The compiled kernel takes one slot a row and a history without room for drafts.
    """

    def causal_conv1d_update(
        x: Any, conv_state: Any, weight: Any, bias: Any = None, activation: Any = None, **named: Any
    ) -> Any:
        indices, null_block = named.get("conv_state_indices"), named.get("null_block_id", 0)
        accepted, starts = named.get("num_accepted_tokens"), named.get("query_start_loc")
        columns = (named.get("initial_state_idx"), named.get("block_idx_last_scheduled_token"))
        if x.dim() != 2 or indices is None:
            return original(x, conv_state, weight, bias, activation, **named)
        if accepted is None and starts is None:
            history = conv_state[..., : weight.shape[1] - 1]
            sources, targets = (column_slots(indices, column) for column in columns)
            move_states(history, sources, targets, null_block)
            rest = {**named, "conv_state_indices": targets}
            return original(x, history, weight, bias, activation, **rest)
        output = convolution.update(
            x,
            conv_state,
            convolution.Filter(weight, bias, activation),
            indices,
            accepted=accepted,
            starts=starts,
            source_column=columns[0],
            target_column=columns[1],
            null_block=null_block,
        )
        out = named.get("out")
        return output if out is None else out.copy_(output)

    return causal_conv1d_update


def _conv_prefill(original: Callable[..., Any]) -> Callable[..., Any]:
    def causal_conv1d_fn(
        x: Any, weight: Any, bias: Any, conv_states: Any, query_start_loc: Any, **named: Any
    ) -> Any:
        last = named.get("block_idx_last_scheduled_token")
        if last is None:
            return original(x, weight, bias, conv_states, query_start_loc, **named)
        blocks = convolution.ConvolutionBlocks(
            named["block_idx_first_scheduled_token"],
            last,
            named["initial_state_idx"],
            named["num_computed_tokens"],
            named["block_size_to_align"],
        )
        layer = convolution.Filter(weight, bias, named.get("activation", "silu"))
        return convolution.prefill(
            x.t(),
            conv_states,
            layer,
            named["cache_indices"],
            query_start_loc,
            named["has_initial_state"],
            blocks,
            named.get("null_block_id", 0),
        ).t()

    return causal_conv1d_fn


def _chunk_scan(original: Callable[..., Any]) -> Callable[..., Any]:
    def mamba_chunk_scan_combined_fwd(
        x: Any, dt: Any, a: Any, b: Any, c: Any, chunk_size: int, out: Any, **named: Any
    ) -> Any:
        if not named.get("return_intermediate_states"):
            return original(x, dt, a, b, c, chunk_size, out, **named)
        chunks = chunk_scan.Chunks.cut(named["cu_chunk_seqlens"], named["seq_idx"])
        sizes = chunk_scan.step_sizes(
            dt,
            named.get("dt_bias"),
            softplus=named.get("dt_softplus", False),
            limits=named.get("dt_limit", (0.0, float("inf"))),
        )
        inputs = chunk_scan.ScanInputs.of(x, sizes, a, b, c)
        output, states = chunk_scan.scan(chunks, inputs, named.get("initial_states"))
        out.copy_(Ending(x, named.get("D"), named.get("z")).apply(output))
        return states.to(named.get("state_dtype") or c.dtype)

    return mamba_chunk_scan_combined_fwd


def _checkpoint(original: Callable[..., None]) -> Callable[..., None]:
    kernel = getattr(
        import_module(f"{_OPS}.ssd_checkpoint"), "_store_prefill_checkpoint_kernel", None
    )
    if hasattr(kernel, "__getitem__"):  # it can be launched, as in an interpreter
        return original

    def store_prefill_checkpoint(plan: Any, chunks: Any, *tensors: Any, state_len: int) -> None:
        x, conv_state, chunk_states, ssm_state, starts = tensors
        where = checkpoint.Checkpoints(starts, plan.checkpoint_offsets, plan.state_indices, chunks)
        checkpoint.store(where, x, conv_state, chunk_states, ssm_state, state_len)

    return store_prefill_checkpoint


def _selective_scan(_: Callable[..., None]) -> Callable[..., None]:
    return lambda *operands: selective_scan.scan(*operands)


def _contiguous(original: Callable[..., None]) -> Callable[..., None]:
    """Have a layer of Mamba1 hand on tensors whose tokens lie one behind the other.

    It does so for LoRA's sake alone, and a CPU's matrix products take no others.
    """

    def forward_impl(layer: Any, *tensors: Any, **named: Any) -> None:
        layer.is_lora_enabled = True
        original(layer, *tensors, **named)

    return forward_impl


def _one_a_head(*parameters: Any) -> bool:
    """Whether all parameters are one number a head, expanded: the compiled update reads no more."""
    return all(not any(parameter.stride()[1:]) for parameter in parameters)


def advance(state: Any, *operands: Any, **named: Any) -> None:
    """Our own state update, for any arguments of the dispatcher's CPU backend.

    Args:
        state: (blocks, heads, head size, state size), updated in place.
        operands: ``x``, ``dt``, ``A``, ``B``, ``C``, ``D``, ``dt_bias``, as the backend gets them.
        named: Its keyword arguments.
    """
    x, dt, a, b, c, d, dt_bias = operands
    sources, written = named.get("state_batch_indices"), named.get("dst_state_batch_indices")
    targets, null_block = sources if written is None else written, named.get("null_block_id", 0)
    counts = named.get("num_accepted_tokens"), named.get("cu_seqlens")
    rows = state_update.rows_of(sources, targets, *counts, null_block)
    softplus = named.get("dt_softplus", False)
    step = state_update.UpdateInputs.of(x, dt, a, b, c, bias=dt_bias, softplus=softplus)
    ending = Ending(x, d, named.get("z"))
    state_update.update(state, step, rows, ending, named["out"], null_block)


def _speculates(named: dict[str, Any]) -> bool:
    return named.get("num_accepted_tokens") is not None or named.get("cu_seqlens") is not None


def _state_update(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let the compiled kernel serve one token a row, after moving the states.

    It takes one slot a row, and writes the state where it has read it. For drafts it is wrong,
    which is a fault of its own (``speculative_state_update``).
    """

    def call(backend: Any, state: Any, *operands: Any, **named: Any) -> None:
        if state.dim() == 3:  # Mamba1
            state, operands, named = selective_scan.with_one_head(state, operands, named)
            advance(state, *operands, **named)
            return
        _, dt, a, _, _, d, dt_bias = operands
        sources, written = named.get("state_batch_indices"), named.get("dst_state_batch_indices")
        targets, null_block = sources if written is None else written, named.get("null_block_id", 0)
        in_place = targets is sources and (sources is None or sources[0].numel() == 1)
        if in_place or _speculates(named):
            original(backend, state, *operands, **named)
        elif _one_a_head(a, d, dt_bias) and dt.stride(-1) == 0:
            sources, targets = column_slots(sources, None), column_slots(targets, None)
            move_states(state, sources, targets, null_block)
            rest = {"state_batch_indices": targets, "dst_state_batch_indices": targets}
            original(backend, state, *operands, **{**named, **rest})
        else:
            advance(state, *operands, **named)

    return call


def _speculative_state_update(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(backend: Any, *tensors: Any, **named: Any) -> None:
        if _speculates(named):
            advance(*tensors, **named)
        else:
            original(backend, *tensors, **named)

    return call


def speculative_state_update() -> PatchSet:
    """Patches that serve accepted counts here, which the compiled state update gets wrong.

    Raises:
        AttributeError: This release has no CPU backend of the state update.
    """
    backend = import_module(f"{_OPS}.ssu_dispatch").CPUSSUBackend
    return PatchSet(Patch(backend, "__call__", _speculative_state_update))


def _remember_states(original: Callable[..., None]) -> Callable[..., None]:
    """Keep the tensors whose addresses the context gets."""

    def initialize_from_forward_context(
        context: Any, kv_cache_config: Any, layers: Any, funcs: Any, tables: Any, *rest: Any
    ) -> None:
        original(context, kv_cache_config, layers, funcs, tables, *rest)
        caches = {
            cache.data_ptr(): cache
            for group in context.mamba_group_ids
            for name in kv_cache_config.kv_cache_groups[group].layer_names
            for cache in layers[name].kv_cache
        }
        context.hybridwatch_states = align.cached_states(context, caches, tables)

    return initialize_from_forward_context


def _precopy(original: Callable[..., None]) -> Callable[..., None]:
    def run_fused_precopy(
        context: Any,
        num_reqs: int,
        state_idx_gpu: Any,
        src_col_gpu: Any,
        token_bias_gpu: Any,
        idx_mapping: Any = None,
    ) -> None:
        if idx_mapping is not None:  # model runner V2
            original(context, num_reqs, state_idx_gpu, src_col_gpu, token_bias_gpu, idx_mapping)
        elif num_reqs and context.is_initialized:
            columns = (state_idx_gpu, src_col_gpu, token_bias_gpu)
            align.move_before_step(
                context.hybridwatch_states, *(column[:num_reqs].tolist() for column in columns)
            )

    return run_fused_precopy


def _postprocess(_: Callable[..., None]) -> Callable[..., None]:
    def run_fused_postprocess(
        context: Any,
        num_reqs: int,
        num_accepted_tokens_gpu: Any,
        mamba_state_idx_gpu: Any,
        num_scheduled_tokens_gpu: Any,
        num_computed_tokens_gpu: Any,
        num_draft_tokens_gpu: Any,
    ) -> None:
        if not num_reqs or not context.is_initialized:
            return
        facts = (
            mamba_state_idx_gpu,
            num_computed_tokens_gpu,
            num_scheduled_tokens_gpu,
            num_draft_tokens_gpu,
            num_accepted_tokens_gpu,
        )
        lists = (fact[:num_reqs].tolist() for fact in facts)
        steps = [align.RequestStep(*request) for request in zip(*lists, strict=True)]
        counts = align.move_after_step(context.hybridwatch_states, steps, context.block_size)
        accepted = context.num_accepted_tokens_out
        accepted[:num_reqs] = accepted.new_tensor(counts)

    return run_fused_postprocess


def _align_patches() -> list[Patch]:
    """Patches of the copies; none where the kernels can be launched, as in an interpreter."""
    module = import_module("vllm.v1.worker.mamba_utils")
    context = getattr(module, "MambaSpecDecodeGPUContext", None)
    kernel = getattr(module, "postprocess_mamba_fused_kernel", None)
    if context is None or hasattr(kernel, "__getitem__"):
        return []
    patches = {
        "initialize_from_forward_context": _remember_states,
        "run_fused_precopy": _precopy,
        "run_fused_postprocess": _postprocess,
    }
    return [Patch(context, name, make) for name, make in patches.items() if hasattr(context, name)]


@cache
def speculation_kernels() -> PatchSet:
    """All patches, made once per process, of the names that this release has."""
    names: list[tuple[str, str, Callable[..., Any]]] = [
        (f"{_OPS}.causal_conv1d", "causal_conv1d_fn", _conv_prefill),
        (f"{_OPS}.causal_conv1d", "causal_conv1d_update", _conv_update),
        (_MIXER, "causal_conv1d_fn", _conv_prefill),
        (_MIXER, "causal_conv1d_update", _conv_update),
        (f"{_OPS}.ssd_combined", "_mamba_chunk_scan_combined_fwd", _chunk_scan),
        (_MIXER, "store_prefill_checkpoint", _checkpoint),
        ("vllm._custom_ops", "selective_scan_fwd", _selective_scan),
    ]
    found = [(import_module(module), name, make) for module, name, make in names]
    patches = [Patch(owner, name, make) for owner, name, make in found if hasattr(owner, name)]
    backend = getattr(import_module(f"{_OPS}.ssu_dispatch"), "CPUSSUBackend", None)
    if backend is not None:
        patches.append(Patch(backend, "__call__", _state_update))
    mamba1 = import_module("vllm.model_executor.layers.mamba.mamba_mixer").MambaMixer
    if hasattr(mamba1, "forward_impl"):
        patches.append(Patch(mamba1, "forward_impl", _contiguous))
    return PatchSet(*patches, *_align_patches())
