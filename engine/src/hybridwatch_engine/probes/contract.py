"""The contract probe: what must hold at every replay of a FULL graph.

Four rules, each counted exactly, whatever text comes out:

* no padded row says "prefilling" when the Mamba metadata is built (``padded_rows_prefilling``);
* the slots that the graph will read are those of the block table for real requests, and the null
  block for padding (``slots_off_block_table``);
* a decode graph replays decodes alone: the Mamba metadata built for the batch holds no prefill row
  (``prefills_in_decode_graph``);
* a dummy run, which stands for no request, reads and writes the null block alone
  (``blocks_in_dummy_runs``).

Occasions are counted too: a rule that had none to break proves nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe, UnsupportedError
from hybridwatch_engine.probes.state_slots import (
    builder_classes,
    layers_of,
    require_known_builders,
    slots_in,
)
from hybridwatch_engine.replays import REPLAYS, CapturedGraph


@dataclass(slots=True)
class Counts:
    """Totals since the probe was started.

    Attributes:
        replays: FULL graphs replayed for requests.
        padded_replays: Of these, with at least one padded row.
        padded_rows: Rows that were padding, over all replays.
        padded_rows_prefilling: Of these, rows that said "prefilling".
        slots: State slots that replays were about to use.
        slots_off_block_table: Of these, slots that differ from the block table.
        prefills_in_decode_graph: Rows that the Mamba metadata of a replayed batch calls prefills.
        one_token_extends: Rows that computed a part of their prompt in a batch shaped like a
            decode, with earlier state; that is one token, or with drafts 1 + drafts.
        first_tokens: Such rows without earlier state.
        dummy_replays: FULL graphs replayed by dummy runs.
        blocks_in_dummy_runs: State slots other than the null block that these used.
    """

    replays: int = 0
    padded_replays: int = 0
    padded_rows: int = 0
    padded_rows_prefilling: int = 0
    slots: int = 0
    slots_off_block_table: int = 0
    prefills_in_decode_graph: int = 0
    one_token_extends: int = 0
    first_tokens: int = 0
    dummy_replays: int = 0
    blocks_in_dummy_runs: int = 0


@dataclass(slots=True)
class _Step:
    """What is known of the step being built.

    Attributes:
        runner: The model runner.
        rows: Rows that stand for requests; the rest are padding.
        dummy: Whether it is a dummy run.
        flags: ``is_prefilling`` as the Mamba builder received it.
        expected: Layer name to the state slots that a correct step uses, row by row.
    """

    runner: Any
    rows: int
    dummy: bool
    flags: Any
    expected: dict[str, Any]


class ContractProbe(CountingProbe[Counts]):
    """Counts broken rules while it is on."""

    def __init__(self) -> None:
        super().__init__(Counts)
        self._step: _Step | None = None
        self._in_dummy_run = False

    def start(self) -> None:
        """Count from zero."""
        super().start()
        if self._see_replay not in REPLAYS.observers:
            REPLAYS.observers.append(self._see_replay)

    def stop(self) -> dict[str, int]:
        """Stop counting and tell."""
        if self._see_replay in REPLAYS.observers:
            REPLAYS.observers.remove(self._see_replay)
        return super().stop()

    def _forget(self) -> None:
        self._step = None

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner

        mamba, delta_net = builder_classes()
        return PatchSet(
            Patch(GPUModelRunner, "_dummy_run", self._see_dummy_run),
            Patch(GPUModelRunner, "_build_attention_metadata", self._see_build),
            Patch(mamba, "_compute_common_metadata", self._see_common),
            # Groups of the same kind after the first reuse its metadata and change the rows only.
            Patch(mamba, "update_block_table", self._see_update),
            Patch(delta_net, "build", self._see_delta_net),
        )

    def _see_dummy_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_run(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._in_dummy_run = True
            try:
                return original(runner, *args, **kwargs)
            finally:
                self._in_dummy_run = False

        return dummy_run

    def _see_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._watch(self._begin, runner, *args, **kwargs)
            return original(runner, *args, **kwargs)

        return build

    def _begin(
        self,
        runner: Any,
        num_tokens: int,  # noqa: ARG002 - vLLM hands both on by name
        num_reqs: int,
        *_: Any,
        **__: Any,
    ) -> None:
        require_known_builders(runner)
        self._step = _Step(runner, num_reqs, self._in_dummy_run, None, {})

    def _see_common(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            self._watch(self._note_flags, builder, common)
            return original(builder, common, **kwargs)

        return compute

    def _see_delta_net(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(
            builder: Any,
            common_prefix_len: int,
            common_attn_metadata: Any,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            self._watch(self._note_flags, builder, common_attn_metadata)
            return original(builder, common_prefix_len, common_attn_metadata, *args, **kwargs)

        return build

    def _note_flags(self, builder: Any, common: Any) -> None:
        step = self._step
        if step is None or step.dummy:
            return
        if step.flags is None:
            self._count_prompt_rows(step, common)
        step.flags = common.is_prefilling
        self._expect(step, builder, common.num_reqs, common.seq_lens)

    def _see_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any, *args: Any) -> Any:
            self._watch(self._note_rows, builder, metadata)
            return original(builder, metadata, *args)

        return update

    def _note_rows(self, builder: Any, metadata: Any) -> None:
        if self._step is not None and not self._step.dummy:
            self._expect(self._step, builder, metadata.num_reqs, metadata.seq_lens)

    def _count_prompt_rows(self, step: _Step, common: Any) -> None:
        """Count the rows that still compute their prompt in a batch shaped like a decode."""
        starts = common.query_start_loc_cpu[: step.rows + 1]
        tokens, decode = starts.diff(), int(step.runner.uniform_decode_query_len)
        if bool((tokens != decode).any()):
            return
        prompt = common.is_prefilling[: step.rows]
        first = prompt & (common.seq_lens_cpu_upper_bound[: step.rows] == tokens)
        self._counts.first_tokens += int(first.sum())
        self._counts.one_token_extends += int((prompt & ~first).sum())

    def _expect(self, step: _Step, builder: Any, rows: int, seq_lens: Any) -> None:
        """Note the state slots by the host's block table: what a correct step uses, row by row."""
        from vllm.v1.attention.backends.utils import NULL_BLOCK_ID, mamba_get_block_table_tensor

        groups = step.runner.kv_cache_config.kv_cache_groups
        layer = layers_of(step.runner, builder)[0]
        index, group = next((i, g) for i, g in enumerate(groups) if layer in g.layer_names)
        table = step.runner.input_batch.block_table[index].get_cpu_tensor()[:rows].clone()
        table[step.rows :] = NULL_BLOCK_ID
        mode = builder.vllm_config.cache_config.mamba_cache_mode
        slots = mamba_get_block_table_tensor(table, seq_lens.cpu(), builder.kv_cache_spec, mode)
        for member in group.layer_names:
            step.expected[member] = slots[:, 0] if mode != "all" else slots

    def _see_replay(self, graph: CapturedGraph, context: Any) -> None:
        self._watch(self._audit, graph, context)

    def _audit(self, graph: CapturedGraph, context: Any) -> None:
        step = self._step
        if step is None:
            return  # built before the probe was on
        if step.dummy:
            self._audit_dummy_run(step, graph)
            return
        if step.flags is None:
            raise UnsupportedError("a graph is replayed on metadata that no known builder has made")
        counts, rows = self._counts, int(step.flags.shape[0])
        padded = rows - step.rows
        counts.replays += 1
        counts.padded_replays += padded > 0
        counts.padded_rows += padded
        counts.padded_rows_prefilling += int(step.flags[step.rows :].sum())
        layer = next(iter(graph.recurrent_metadata))
        counts.prefills_in_decode_graph += context.attn_metadata[layer].num_prefills
        for layer in _one_per_group(step.runner, graph):
            wanted = step.expected[layer].reshape(rows, -1)
            used = _slots(graph, layer)[:rows].reshape(rows, -1)
            width = min(used.shape[1], wanted.shape[1])
            counts.slots += rows * width
            counts.slots_off_block_table += int((used[:, :width] != wanted[:, :width]).sum())

    def _audit_dummy_run(self, step: _Step, graph: CapturedGraph) -> None:
        from vllm.v1.attention.backends.utils import NULL_BLOCK_ID

        self._counts.dummy_replays += 1
        for layer in _one_per_group(step.runner, graph):
            used = _slots(graph, layer)
            self._counts.blocks_in_dummy_runs += int((used != NULL_BLOCK_ID).sum())


def _slots(graph: CapturedGraph, layer: str) -> Any:
    """State slots that a graph's kernels will use in one layer."""
    return slots_in(graph.recurrent_metadata[layer]).cpu()


def _one_per_group(runner: Any, graph: CapturedGraph) -> list[str]:
    """A recurrent layer of each cache group; the others share its slots."""
    groups = runner.kv_cache_config.kv_cache_groups
    named = (
        [name for name in group.layer_names if name in graph.recurrent_metadata] for group in groups
    )
    return [names[0] for names in named if names]
