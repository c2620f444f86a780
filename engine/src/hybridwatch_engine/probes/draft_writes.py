"""Where a drafter's attention writes: never into blocks that hold a request's Mamba state.

Layers of the draft and Mamba layers of the target share their memory, block by block; the cache
groups keep apart only because each has block ids of its own. Every pass of the drafter is looked at
just before it writes, by the slots that it is about to write.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe


@dataclass(slots=True)
class DraftWriteCounts:
    """Totals since the probe was started.

    Attributes:
        draft_passes: Times that the drafter ran for requests.
        draft_blocks: Blocks that it wrote into, each once a pass.
        mamba_blocks_overwritten: Of these, blocks of a Mamba group that the draft has no claim to.
    """

    draft_passes: int = 0
    draft_blocks: int = 0
    mamba_blocks_overwritten: int = 0


class DraftWritesProbe(CountingProbe[DraftWriteCounts]):
    """Counts the drafter's writes while it is on; model runner V1."""

    def __init__(self) -> None:
        super().__init__(DraftWriteCounts)
        self._runner: Any = None

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner

        return PatchSet(
            Patch(GPUModelRunner, "propose_draft_token_ids", self._see_proposal),
            Patch(SpecDecodeBaseProposer, "_get_slot_mapping", self._see_slots),
        )

    def _see_proposal(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def propose(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._runner = runner
            try:
                return original(runner, *args, **kwargs)
            finally:
                self._runner = None

        return propose

    def _see_slots(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_slot_mapping(drafter: Any, *args: Any, **kwargs: Any) -> Any:
            slots_of_layers = original(drafter, *args, **kwargs)
            # A dummy run drafts for nobody.
            if self._runner is not None and slots_of_layers:
                self._watch(self._count, self._runner, drafter, slots_of_layers)
            return slots_of_layers

        return get_slot_mapping

    def _count(self, runner: Any, drafter: Any, slots_of_layers: dict[str, Any]) -> None:
        """Count one pass; all layers of a drafter write into the same slots."""
        from vllm.v1.attention.backends.utils import NULL_BLOCK_ID

        group, groups = drafter.kv_cache_gid, runner.kv_cache_config.kv_cache_groups
        slots = next(iter(slots_of_layers.values())).cpu()
        blocks = slots[slots >= 0] // groups[group].kv_cache_spec.block_size
        written = set(blocks.tolist()) - {NULL_BLOCK_ID}
        of_mamba = set(_blocks(runner, _mamba_groups(groups))) - set(_blocks(runner, [group]))
        self._counts.draft_passes += 1
        self._counts.draft_blocks += len(written)
        self._counts.mamba_blocks_overwritten += len(written & of_mamba)


def _blocks(runner: Any, groups: Iterable[int]) -> Iterable[int]:
    """Blocks that requests have in these groups, as the worker knows them."""
    for group in groups:
        for request in runner.requests.values():
            yield from request.block_ids[group]


def _mamba_groups(groups: list[Any]) -> list[int]:
    from vllm.v1.kv_cache_interface import MambaSpec

    return [at for at, group in enumerate(groups) if isinstance(group.kv_cache_spec, MambaSpec)]
