"""The contract probe: what must hold at every replay of a FULL graph.

Two rules, each counted exactly, whatever text comes out:

* no padded row says "prefilling" when the Mamba metadata is built (``padded_rows_prefilling``);
* the slots that the graph will read are those of the block table for real requests, and the null
  block for padding (``slots_off_block_table``).

Replays and padded rows are counted too: a rule that had no occasion to break proves nothing.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hybridwatch_engine.cpu.graph_replay import OBSERVERS, CapturedGraph
from hybridwatch_engine.patch import Patch, PatchSet


@dataclass(slots=True)
class Counts:
    """Totals since the probe was started.

    Attributes:
        replays: FULL graphs replayed.
        padded_replays: Of these, with at least one padded row.
        padded_rows: Rows that were padding, over all replays.
        padded_rows_prefilling: Of these, rows that said "prefilling".
        slots: State slots that replays were about to read.
        slots_off_block_table: Of these, slots that differ from the block table.
    """

    replays: int = 0
    padded_replays: int = 0
    padded_rows: int = 0
    padded_rows_prefilling: int = 0
    slots: int = 0
    slots_off_block_table: int = 0


class ContractProbe:
    """Counts broken rules while it is on."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._runner: Any = None
        self._real_rows = 0
        self._expected: dict[str, Any] = {}
        self._flags: Any = None
        self._hooks: PatchSet | None = None

    def start(self) -> None:
        """Count from zero."""
        self._counts = Counts()
        if self._hooks is None:
            self._hooks = self._make_hooks()
        if not self._hooks.in_place:
            self._hooks.install()
            OBSERVERS.callbacks.append(self._audit)

    def stop(self) -> dict[str, int]:
        """Stop counting and tell."""
        if self._hooks is not None and self._hooks.in_place:
            OBSERVERS.callbacks.remove(self._audit)
            self._hooks.remove()
        return asdict(self._counts)

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner

        builder = BaseMambaAttentionMetadataBuilder
        return PatchSet(
            Patch(GPUModelRunner, "_build_attention_metadata", self._see_build),
            Patch(builder, "_compute_common_metadata", self._see_common),
            # Groups of the same kind after the first reuse its metadata and change the rows only.
            Patch(builder, "update_block_table", self._see_update),
        )

    def _see_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, num_tokens: int, num_reqs: int, *args: Any, **kwargs: Any) -> Any:
            self._runner, self._real_rows, self._expected = runner, num_reqs, {}
            return original(runner, num_tokens, num_reqs, *args, **kwargs)

        return build

    def _see_common(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            self._flags = common.is_prefilling
            self._expect(builder, common.num_reqs, common.seq_lens)
            return original(builder, common, **kwargs)

        return compute

    def _see_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any, *args: Any) -> Any:
            self._expect(builder, metadata.num_reqs, metadata.seq_lens)
            return original(builder, metadata, *args)

        return update

    def _expect(self, builder: Any, rows: int, seq_lens: Any) -> None:
        """Note the state slots by the host's block table: what a correct step reads, row by row."""
        from vllm.v1.attention.backends.utils import NULL_BLOCK_ID, mamba_get_block_table_tensor

        layers = self._group_of(builder.layer_names[0])
        groups = self._runner.kv_cache_config.kv_cache_groups
        group = next(i for i, each in enumerate(groups) if list(each.layer_names) == layers)
        table = self._runner.input_batch.block_table[group].get_cpu_tensor()[:rows].clone()
        table[self._real_rows :] = NULL_BLOCK_ID
        mode = builder.vllm_config.cache_config.mamba_cache_mode
        slots = mamba_get_block_table_tensor(table, seq_lens.cpu(), builder.kv_cache_spec, mode)
        for layer in layers:
            self._expected[layer] = slots[:, 0] if mode != "all" else slots

    def _audit(self, graph: CapturedGraph, _: Any) -> None:
        counts = self._counts
        counts.replays += 1
        rows = int(self._flags.shape[0])
        padded = rows - self._real_rows
        counts.padded_replays += padded > 0
        counts.padded_rows += padded
        counts.padded_rows_prefilling += int(self._flags[self._real_rows :].sum())
        for layer, metadata in graph.mamba_metadata.items():
            if layer not in self._expected:
                continue  # counted with another layer of its group: they share one buffer
            wanted = self._expected[layer].reshape(rows, -1)
            used = metadata.state_indices_tensor_d[:rows].cpu().reshape(rows, -1)
            width = min(used.shape[1], wanted.shape[1])
            counts.slots += rows * width
            counts.slots_off_block_table += int((used[:, :width] != wanted[:, :width]).sum())
            for member in self._group_of(layer):
                del self._expected[member]

    def _group_of(self, layer: str) -> list[str]:
        groups = self._runner.kv_cache_config.kv_cache_groups
        return next(list(group.layer_names) for group in groups if layer in group.layer_names)
