"""A step without drafts continues from the last accepted token.

Two fixes of one cause. The runner hands the number of accepted drafts, and in mode ``all`` the
block from which the previous step wrote, to the Mamba metadata builder only when some request has
drafts in this step. In a step without any, mode ``all`` dies on an assertion (vllm#46424, open),
and the other modes silently continue from the state of the first token of the step before.
"""

import ast
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, assigns, calls, mentions

_RUNNER = "v1/worker/gpu_model_runner.py"
_BUILD = "GPUModelRunner._build_attention_metadata"
_EXECUTE = "GPUModelRunner.execute_model"
_UTILS = "v1/worker/mamba_utils.py"


_CURRENT: ContextVar[Any] = ContextVar("runner of the metadata build in progress", default=None)


def _always_passes_counts(tree: SourceTree) -> bool | None:
    """Whether the counts go to the builder in every step; ``None`` without such code."""
    build = tree.function(_RUNNER, _BUILD)
    if build is None or not mentions(build, "num_accepted_tokens"):
        return None
    return not mentions(build, "use_spec_decode") or not _requires_drafts(tree)


def _requires_drafts(tree: SourceTree) -> bool:
    """Whether only a step with drafts counts as speculation; 0.32.0 does not require drafts."""
    step = tree.function(_RUNNER, _EXECUTE)
    nodes = ast.walk(step) if step else ()
    answers = [node for node in nodes if isinstance(node, ast.Assign)]
    answers = [node for node in answers if assigns(node, "use_spec_decode")]
    return not answers or any(mentions(node, "scheduled_spec_decode_tokens") for node in answers)


def _probe_counts(tree: SourceTree) -> Finding:
    """Look for a hand-over that does not depend on drafts in this step."""
    always = _always_passes_counts(tree)
    if always is None:
        return Finding("not-applicable", f"{_RUNNER} tells no accepted counts to Mamba layers")
    when = "in every step" if always else "in steps with drafts alone"
    return Finding("present" if always else "lacking", f"{_RUNNER} tells accepted counts {when}")


def _probe_anchor(tree: SourceTree) -> Finding:
    """The same, where the anchor of the previous step is handed over."""
    build = tree.function(_RUNNER, _BUILD)
    if build is None or not mentions(build, "mamba_prev_last_scheduled_idx"):
        return Finding("not-applicable", f"{_RUNNER} hands over no block of the previous step")
    after = tree.function(_UTILS, "postprocess_mamba_all")
    forgets = after is not None and bool(calls(after, "pop"))
    if _always_passes_counts(tree) and not forgets:
        return Finding("present", f"{_RUNNER} hands over the block in every step")
    return Finding("lacking", f"{_RUNNER} hands over the block in steps with drafts alone")


def _pass_in_every_step(*, by_block: bool) -> PatchSet:
    """Pass the Mamba2 builder the counts that a step without drafts leaves out.

    Args:
        by_block: For mode ``all``, with the block of the previous step; else for the others.
    """
    from vllm.v1.attention.backends.mamba2_attn import Mamba2AttentionMetadataBuilder
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def remember_runner(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            token = _CURRENT.set(runner)
            try:
                return original(runner, *args, **kwargs)
            finally:
                _CURRENT.reset(token)

        return build

    def pass_counts(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(
            builder: Any, common_prefix_len: int, common_attn_metadata: Any, **kwargs: Any
        ) -> Any:
            runner = _CURRENT.get()
            mode = builder.vllm_config.cache_config.mamba_cache_mode
            is_missing = builder.use_spec_decode and kwargs.get("num_accepted_tokens") is None
            if runner is not None and is_missing and (mode == "all") == by_block:
                rows = slice(0, common_attn_metadata.num_reqs)
                kwargs["num_accepted_tokens"] = runner.num_accepted_tokens.gpu[rows]
                if by_block:
                    anchors = runner.mamba_prev_last_scheduled_idx.gpu
                    kwargs["prev_last_scheduled_idx"] = anchors[rows]
            return original(builder, common_prefix_len, common_attn_metadata, **kwargs)

        return build

    return PatchSet(
        Patch(GPUModelRunner, "_build_attention_metadata", remember_runner),
        Patch(Mamba2AttentionMetadataBuilder, "build", pass_counts),
    )


def _apply_anchor() -> PatchSet:
    """Remember the block after every step, and hand it on in every step."""
    from vllm.v1.worker import mamba_utils

    def remember(original: Callable[..., None]) -> Callable[..., None]:
        def postprocess(
            scheduled: Any,
            cache_config: Any,
            batch: Any,
            requests: Any,
            blocks: dict[str, int],
            drafts: int,
            rows: int,
        ) -> None:
            original(scheduled, cache_config, batch, requests, blocks, drafts, rows)
            groups = mamba_utils.get_mamba_groups(cache_config)
            # A pair of group ids and their spec; in 0.31.0 the ids by their specs.
            spec = next(iter(groups)) if isinstance(groups, dict) else groups[1]
            for request in batch.req_ids[:rows]:
                tokens = scheduled.num_scheduled_tokens.get(request, 0)
                if tokens:
                    last = requests[request].num_computed_tokens + tokens - 1
                    blocks[request] = last // spec.block_size

        return postprocess

    patches = _pass_in_every_step(by_block=True)
    return PatchSet(*patches.patches, Patch(mamba_utils, "postprocess_mamba_all", remember))


def _apply_counts() -> PatchSet:
    """Hand the counts on in every step."""
    return _pass_in_every_step(by_block=False)


FIX = Fix(
    header("prev-step-anchor"),
    _probe_anchor,
    apply=_apply_anchor,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.steps:anchors_without_drafts",
        with_fix={
            "remembered": {"short": 2, "full": 3},
            "accepted": [2, 1],
            "anchors": [2, 3],
        },
        without_fix={"remembered": {"full": 3}, "accepted": None, "anchors": None},
    ),
)
# 0.32.0 hands on the counts by a decision inside a long function, which no wrapper takes back.
ACCEPTED_COUNTS = Fix(
    header("accepted-counts"),
    _probe_counts,
    apply=_apply_counts,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.steps:accepted_without_drafts",
        with_fix={"accepted": [2, 1]},
        without_fix={"accepted": None},
    ),
)
