"""A draft model works in its own blocks; beyond upstream (docs/findings.md)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_RUNNER = "v1/worker/gpu_model_runner.py"
_BUILD = "_build_attention_metadata"
_PROPOSER = "v1/spec_decode/draft_model.py"


_OF_DRAFT_MODELS = ("DraftModelProposer", "SpecDecodeBaseProposer")
"""Classes of which a draft model's proposer is one."""


def probe(tree: SourceTree) -> Finding:
    """Look at the drafters that are given the metadata of their own group."""
    build = tree.function(_RUNNER, f"GPUModelRunner.{_BUILD}")
    if build is None or not mentions(build, "drafter") or tree.module(_PROPOSER) is None:
        return Finding("not-applicable", f"{_RUNNER} builds no metadata for draft models")
    for test in calls(build, "isinstance"):
        listed = mentions(test, "EagleProposer")
        if listed and not any(mentions(test, name) for name in _OF_DRAFT_MODELS):
            return Finding("lacking", f"{_RUNNER}:{test.lineno} leaves draft models out")
    return Finding("present", f"{_RUNNER}:{build.lineno} leaves no draft model out")


def _apply() -> PatchSet:
    """Exchange two tensors of the metadata that the drafter gets; no kernel, no host read."""
    from vllm.v1.spec_decode.draft_model import DraftModelProposer
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            metadata, common = original(runner, *args, **kwargs)
            drafter = getattr(runner, "drafter", None)
            if common is not None and isinstance(drafter, DraftModelProposer):
                group = drafter.kv_cache_gid
                table = runner.input_batch.block_table[group]
                common = common.replace(
                    block_table_tensor=table.get_device_tensor(common.num_reqs),
                    slot_mapping=kwargs["slot_mappings"][group][: common.num_actual_tokens],
                )
            return metadata, common

        return build

    return PatchSet(Patch(GPUModelRunner, _BUILD, wrap))


FIX = Fix(
    header("draft-model-cache-group"),
    probe,
    apply=_apply,
    # Without it the draft writes into the blocks of the first group.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:blocks_of_draft_model",
        with_fix={"blocks": [[200, 201], [202, 203]], "slots": [2000, 2001]},
        without_fix={"blocks": [[100, 101], [102, 103]], "slots": [1000, 1001]},
    ),
)
