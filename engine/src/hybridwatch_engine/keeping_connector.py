"""A KV connector that keeps every full block of a prompt, and restores all that the engine lost.

vLLM loads it by its name (``kv_connector_module_path``) where a scenario asks for
``engine.kv_connector = "keeping"``. Blocks are kept in the worker's memory and are put back in the
step that needs them, before the model runs: a synchronous load, as vLLM calls it. An engine must
answer with it as without it.

Of the attention layers the keys of every block are kept, of the recurrent ones the state at the end
of each block at which a step of a prompt has ended. What an answer has added is not kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    SupportsHMA,
)

Key = tuple[int, Any]
"""Cache group, and the hash of all tokens up to the end of a block."""


@dataclass
class Moves(KVConnectorMetadata):  # type: ignore[misc]  # vLLM has no types here
    """What a worker has to do in one step; blocks by their ids.

    Attributes:
        loads: Before the model runs.
        saves: After it.
        forget: Whether everything that is kept is dropped first.
    """

    loads: list[tuple[Key, int]] = field(default_factory=list)
    saves: list[tuple[Key, int]] = field(default_factory=list)
    forget: bool = False


@dataclass
class _Request:
    """A request as the scheduler's side knows it.

    Attributes:
        request: vLLM's own.
        local: Tokens that the engine has of it itself.
        blocks: Its block ids, of each cache group.
    """

    request: Any
    local: int
    blocks: list[list[int]] = field(default_factory=list)


class KeepingConnector(KVConnectorBase_V1, SupportsHMA):  # type: ignore[misc]  # as above
    """One instance in the scheduler's process knows what is kept, one in the worker's keeps it."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self._requests: dict[str, _Request] = {}
        self._known: set[Key] = set()
        self._moves = Moves()
        self._pages: list[Any] = []
        self._kept: dict[Key, list[Any]] = {}

    # In the scheduler's process.

    def get_num_new_matched_tokens(self, request: Any, local: int) -> tuple[int, bool]:
        """Tokens that can be restored beyond those that the engine has, in this very step."""
        self._requests[request.request_id] = _Request(request, local)
        # The last token is computed in any case: its logits are needed.
        for end in range((request.num_tokens - 1) // self._block, local // self._block, -1):
            wanted = self._keys(request, local, end * self._block)
            if all(key in self._known for key, _, _ in wanted):
                return end * self._block - local, False
        return 0, False

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> None:
        """Note which blocks are to be restored, and where."""
        if not external:
            return
        ids, local = blocks.get_block_ids(), self._requests[request.request_id].local
        for key, group, column in self._keys(request, local, local + external):
            self._moves.loads.append((key, ids[group][column]))

    def build_connector_meta(self, scheduled: Any) -> Moves:
        """Note what the step completes; it may be restored from the next step on."""
        self._follow_blocks(scheduled)
        for name, tokens in scheduled.num_scheduled_tokens.items():
            mine = self._requests[name]
            start = mine.request.num_computed_tokens
            if start + tokens > mine.request.num_prompt_tokens:
                continue
            for key, group, column in self._keys(mine.request, start, start + tokens):
                if key not in self._known:
                    self._known.add(key)
                    self._moves.saves.append((key, mine.blocks[group][column]))
        moves, self._moves = self._moves, Moves()
        return moves

    def request_finished_all_groups(self, request: Any, _: Any) -> tuple[bool, None]:
        """The blocks may go."""
        self._requests.pop(request.request_id, None)
        return False, None

    def reset_cache(self) -> bool:
        """Keep nothing of what there was."""
        self._known.clear()
        self._moves.forget = True
        return True

    @property
    def _block(self) -> int:
        return int(self._kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size)

    def _keys(self, request: Any, start: int, end: int) -> Iterator[tuple[Key, int, int]]:
        """Whatever holds the tokens from ``start`` to ``end``: its key, group, and column."""
        from vllm.v1.kv_cache_interface import MambaSpec

        first, last = start // self._block, end // self._block
        for group, one in enumerate(self._kv_cache_config.kv_cache_groups):
            columns = range(first, last)
            if isinstance(one.kv_cache_spec, MambaSpec):
                columns = range(last - 1, last) if last and end % self._block == 0 else range(0)
            for column in columns:
                yield (group, request.block_hashes[column]), group, column

    def _follow_blocks(self, scheduled: Any) -> None:
        for new in scheduled.scheduled_new_reqs:
            self._requests[new.req_id].blocks = [list(ids) for ids in new.block_ids]
        old = scheduled.scheduled_cached_reqs
        for name, added in zip(old.req_ids, old.new_block_ids, strict=True):
            mine = self._requests[name]
            if name in old.resumed_req_ids:
                mine.blocks = [list(ids) for ids in added]
            elif added is not None:
                for ids, more in zip(mine.blocks, added, strict=True):
                    ids.extend(more)

    # Beside the model.

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        """Take the memory of all layers as rows of bytes, one for each block."""
        self._pages = _rows(kv_caches.values(), int(self._kv_cache_config.num_blocks))

    def start_load_kv(self, *_: Any, **__: Any) -> None:
        """Put back what is to be restored."""
        moves = self._get_connector_metadata()
        if moves.forget:
            self._kept.clear()
        for key, block in moves.loads:
            for rows, kept in zip(self._pages, self._kept[key], strict=True):
                rows[block] = kept

    def wait_for_save(self) -> None:
        """Keep what the step has completed."""
        for key, block in self._get_connector_metadata().saves:
            self._kept[key] = [rows[block].clone() for rows in self._pages]

    def wait_for_layer_load(self, layer_name: str) -> None:
        """All is there before the first layer."""

    def save_kv_layer(self, *_: Any, **__: Any) -> None:
        """All is kept after the last layer."""


def _rows(caches: Any, blocks: int) -> list[Any]:
    """Each memory that layers share, as one row of bytes a block."""
    import torch

    tensors = [
        tensor for cache in caches for tensor in (cache if isinstance(cache, Sequence) else [cache])
    ]
    memories = {one.untyped_storage().data_ptr(): one.untyped_storage() for one in tensors}
    return [
        torch.empty(0, dtype=torch.uint8).set_(memory).view(blocks, -1)
        for memory in memories.values()
    ]
