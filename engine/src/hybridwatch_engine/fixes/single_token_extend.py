"""A one-token prefill with prior state is a decode (vllm#42430)."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, stores_into

_RULE_OF_V2 = "prefill_runs_as_decode_np"
"""Rows of a batch that compute their prompt and run as decodes."""

_FLAGS: ContextVar[Any] = ContextVar("is_prefilling as the Mamba builder received it")


def probe(tree: SourceTree) -> Finding:
    """Look for rows whose prefilling flag is taken away before the batch is split."""
    path = "v1/attention/backends/mamba_attn.py"
    build = tree.function(path, "BaseMambaAttentionMetadataBuilder._compute_common_metadata")
    splits = calls(build, "split_decodes_and_prefills") if build else []
    by_flag = [
        call
        for call in splits
        if any(keyword.arg == "treat_short_extends_as_decodes" for keyword in call.keywords)
    ]
    if build is None or not by_flag:
        return Finding("not-applicable", f"{path} splits batches by length alone")
    stores = stores_into(build, "is_prefilling")
    if stores:
        return Finding(
            "present", f"{path}:{stores[0].lineno} hands one-token extends on as decodes"
        )
    return Finding("lacking", f"{path}:{by_flag[0].lineno} splits by the flags as they come")


def _apply() -> PatchSet:
    """Clear the flag of rows of one token behind at least one computed token.

    All tensors read here live in host memory, and only the new flags are computed from them.
    """
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            starts = common.query_start_loc_cpu
            one_token = (starts[1:] - starts[:-1]) == 1
            extends = one_token & (common.seq_lens_cpu_upper_bound > 1)
            flags = common.is_prefilling & ~extends
            return original(builder, common.replace(is_prefilling=flags), **kwargs)

        return compute

    return PatchSet(Patch(BaseMambaAttentionMetadataBuilder, "_compute_common_metadata", wrap))


def _revert() -> PatchSet:
    """Split batches by the flags as they came, as releases before 0.22.0 did.

    The builder changes a copy of the flags and hands it to the function that splits the batch,
    which it knows by a name of its module; nothing reads the changed flags afterwards. Model runner
    V2 has the rule a second time from 0.31.0 on: it chooses graphs by it, which stays, and hands
    the builder flags that it has changed.
    """
    from vllm.v1.attention.backends import mamba_attn
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState

    def remember_flags(original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            token = _FLAGS.set(common.is_prefilling)
            try:
                return original(builder, common, **kwargs)
            finally:
                _FLAGS.reset(token)

        return compute

    def with_old_flags(original: Callable[..., Any]) -> Callable[..., Any]:
        def split(common: Any, *args: Any, **kwargs: Any) -> Any:
            flags = _FLAGS.get(None)
            if flags is not None:  # another builder of the module may split without us
                common = common.replace(is_prefilling=flags)
            return original(common, *args, **kwargs)

        return split

    def with_flags_of_prompts(original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_attn(state: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            rule = getattr(batch, _RULE_OF_V2, None)
            if rule is None:
                return original(state, batch, *args, **kwargs)
            setattr(batch, _RULE_OF_V2, None)
            try:
                return original(state, batch, *args, **kwargs)
            finally:
                setattr(batch, _RULE_OF_V2, rule)

        return prepare_attn

    builder = mamba_attn.BaseMambaAttentionMetadataBuilder
    return PatchSet(
        Patch(MambaHybridModelState, "prepare_attn", with_flags_of_prompts),
        Patch(builder, "_compute_common_metadata", remember_flags),
        Patch(mamba_attn, "split_decodes_and_prefills", with_old_flags),
    )


FIX = Fix(
    header("single-token-extend"),
    probe,
    apply=_apply,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:split_of_extends",
        with_fix={"decodes": 2, "prefills": 1, "graph_slots": [3, 4]},
        without_fix={"decodes": 1, "prefills": 2, "graph_slots": [-1, -1]},
    ),
)
