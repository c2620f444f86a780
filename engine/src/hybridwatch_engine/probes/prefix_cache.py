"""The probe of the prefix cache: lookups, hits, and the states behind them.

It watches the scheduler, which manages the cache, so it is the same for both model runners. Three
rules:

* a hit is in the cache for every kind of layer: the keys of all attention blocks and one Mamba
  state at its end (``prefix_hit_uncached``);
* a Mamba state that is cached for the end of a block was written there (``cached_states_off``);
* the same prompt sent again hits a Mamba state wherever attention hits its keys
  (``repeats_missed``).

The last one holds as long as nothing was evicted, and before 0.32.0 not for prompts that end with a
block: a repeat continues from the block before the last one, and no step ended there. Releases
before 0.26.0 have no lookup by kind of layer; for them the counts that need it are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe

_BY_KIND: Final = ("prefix_tokens_attention", "prefix_tokens_mamba", "repeats_missed")
"""Counts that need a lookup for each kind of layer."""


@dataclass(slots=True)
class PrefixCacheCounts:
    """Totals since the probe was started.

    Lookups are those of requests that were not preempted before.

    Attributes:
        prefix_tokens_asked: Prompt tokens that were looked up.
        prefix_tokens_hit: Of these, tokens that need not be computed.
        prefix_tokens_attention: Tokens whose keys the attention layers have. With a draft head they
            do without the last block that they find: it is computed again for the head.
        prefix_tokens_mamba: Tokens up to the deepest Mamba state that is kept.
        prefix_hit_uncached: Tokens of hits that some kind of layer does not have. Where a KV
            connector has more of a prompt it brings the state, and only the keys must be cached.
        external_tokens: Tokens that a KV connector restores.
        repeats: Prompts that another request had computed before, token for token.
        repeats_missed: Tokens of these whose keys were found, and that are computed all the same.
        states_cached: Mamba states that the cache began to keep in mode ``align``, of each group.
        cached_states_off: Of these, states that were not written at the end of their block.
        resumed_chunks: Steps that computed again what a preempted request had lost.
    """

    prefix_tokens_asked: int = 0
    prefix_tokens_hit: int = 0
    prefix_tokens_attention: int = 0
    prefix_tokens_mamba: int = 0
    prefix_hit_uncached: int = 0
    external_tokens: int = 0
    repeats: int = 0
    repeats_missed: int = 0
    states_cached: int = 0
    cached_states_off: int = 0
    resumed_chunks: int = 0


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The last lookup of one request; its counts are those of ``PrefixCacheCounts``."""

    prompt_tokens: int
    hit: int
    attention: int
    mamba: int
    uncached: int
    is_repeat: bool

    @property
    def missed(self) -> int:
        """Tokens of a repeat that the attention layers have and the request is not spared."""
        return max(0, self.attention - self.hit) if self.is_repeat else 0


class PrefixCacheProbe(CountingProbe[PrefixCacheCounts]):
    """Counts hits, and what is wrong with them, while it is on."""

    def __init__(self) -> None:
        super().__init__(PrefixCacheCounts)
        self._lookups: dict[str, _Lookup] = {}
        self._first: dict[tuple[int, ...], Any] = {}
        self._resumed: set[tuple[str, int, int]] = set()
        self._evicted = False
        self._restored = 0

    def stop(self) -> dict[str, Any]:
        """Stop counting and return the counts; of each request the last lookup counts."""
        counts, lookups = self._counts, self._lookups.values()
        counts.prefix_tokens_asked = sum(lookup.prompt_tokens for lookup in lookups)
        counts.prefix_tokens_hit = sum(lookup.hit for lookup in lookups)
        counts.prefix_tokens_attention = sum(lookup.attention for lookup in lookups)
        counts.prefix_tokens_mamba = sum(lookup.mamba for lookup in lookups)
        counts.prefix_hit_uncached = sum(lookup.uncached for lookup in lookups)
        counts.repeats = sum(lookup.is_repeat for lookup in lookups)
        counts.repeats_missed = sum(lookup.missed for lookup in lookups)
        counts.resumed_chunks = len(self._resumed)
        totals = super().stop()
        return (
            totals if _has_hits_by_kind() else {k: totals[k] for k in totals if k not in _BY_KIND}
        )

    def _forget(self) -> None:
        self._lookups, self._first, self._resumed, self._evicted = {}, {}, set(), False

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.core.block_pool import BlockPool
        from vllm.v1.core.kv_cache_manager import KVCacheManager
        from vllm.v1.core.single_type_kv_cache_manager import MambaManager

        # With a KV connector another one is called first, from 0.27.1 on.
        lookups = ("get_computed_blocks", "get_computed_blocks_for_connector")
        return PatchSet(
            *(
                Patch(KVCacheManager, name, self._see_lookup)
                for name in lookups
                if hasattr(KVCacheManager, name)
            ),
            Patch(KVCacheManager, "allocate_slots", self._see_allocation),
            Patch(MambaManager, "cache_blocks", self._see_caching),
            Patch(BlockPool, "_maybe_evict_cached_block", self._see_eviction),
        )

    def _see_eviction(self, original: Callable[..., bool]) -> Callable[..., bool]:
        def evict(pool: Any, *args: Any, **named: Any) -> bool:
            evicted = original(pool, *args, **named)
            self._evicted = self._evicted or evicted
            return evicted

        return evict

    def _see_lookup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        # 0.33.0 has given it one argument more.
        def get_computed_blocks(manager: Any, request: Any, *args: Any, **named: Any) -> Any:
            answer = original(manager, request, *args, **named)
            self._watch(self._note_lookup, manager.coordinator, request, answer)
            return answer

        return get_computed_blocks

    def _see_allocation(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def allocate_slots(manager: Any, request: Any, *args: Any, **named: Any) -> Any:
            external = named.get("num_external_computed_tokens", 0)
            self._restored = external and external + named.get("num_new_computed_tokens", 0)
            try:
                answer = original(manager, request, *args, **named)
            finally:
                self._restored = 0
            if external and answer is not None:
                self._watch(self._note_restored, manager.coordinator, request, external, named)
            return answer

        return allocate_slots

    def _note_restored(
        self, coordinator: Any, request: Any, external: int, named: Mapping[str, Any]
    ) -> None:
        self._counts.external_tokens += external
        found = self._lookups.get(request.request_id)
        if found is not None:
            blocks, hit = named["new_computed_blocks"].blocks, named["num_new_computed_tokens"]
            uncached = _uncached(coordinator, blocks, hit, with_state=False)
            self._lookups[request.request_id] = replace(found, uncached=uncached)

    def _note_lookup(self, coordinator: Any, request: Any, answer: Sequence[Any]) -> None:
        """Note a request's lookup; it is looked up again until there is room for it."""
        if request.num_preemptions or not hasattr(coordinator, "attention_groups"):
            return  # without a prefix cache, or with one kind of layer, no groups are reconciled
        blocks, hit = answer[0].blocks, int(answer[1])
        attention, mamba = (
            _find_hits_by_kind(coordinator, request) if _has_hits_by_kind() else (0, 0)
        )
        self._lookups[request.request_id] = _Lookup(
            prompt_tokens=request.num_prompt_tokens,
            hit=hit,
            attention=attention,
            mamba=mamba,
            uncached=_uncached(coordinator, blocks, hit),
            is_repeat=self._is_repeat(request, coordinator.scheduler_block_size),
        )

    def _is_repeat(self, request: Any, block_size: int) -> bool:
        """Whether another request has computed this very prompt, and nothing was lost since."""
        prompt = request.prompt_token_ids
        if prompt is None or self._evicted:
            return False
        if len(prompt) % block_size == 0 and not _keeps_block_before_last():
            return False
        first = self._first.setdefault(tuple(prompt), request)
        return first is not request and first.num_computed_tokens >= first.num_prompt_tokens

    def _see_caching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def cache_blocks(
            manager: Any, request: Any, num_tokens: int, *args: Any, **named: Any
        ) -> Any:
            before = manager.num_cached_block.get(request.request_id, 0)
            answer = original(manager, request, num_tokens, *args, **named)
            self._watch(self._note_cached, manager, request, num_tokens, before)
            return answer

        return cache_blocks

    def _note_cached(self, manager: Any, request: Any, end: int, before: int) -> None:
        """Look at the states that a step up to the token ``end`` makes reachable.

        A step writes the state behind its last token alone. So a block whose last token it computes
        on its way to a further one keeps what an earlier step has left there, at another token.
        """
        if manager.mamba_cache_mode != "align":
            return
        # A request that is looked up counts its hit only when it has been scheduled.
        # What a connector restores was written at the end of its block by another engine.
        start = max(request.num_computed_tokens, before * manager.block_size, self._restored)
        if request.num_preemptions and start < request.num_tokens - 1:
            self._resumed.add((request.request_id, request.num_preemptions, start))
        blocks = manager.req_to_blocks[request.request_id]
        after = manager.num_cached_block.get(request.request_id, 0)
        for index in range(before, min(after, len(blocks))):
            if blocks[index].is_null or blocks[index].block_hash is None:
                continue
            # From 0.32.0 on a block may be cached for an end that does not follow from its place.
            named = getattr(blocks[index], "block_hash_num_tokens", None)
            last = named or (index + 1) * manager.block_size
            passed = start < last < end and last != _stored_amid(manager, request)
            self._counts.states_cached += 1
            self._counts.cached_states_off += passed


def _has_hits_by_kind() -> bool:
    from vllm.v1.core.kv_cache_coordinator import HybridKVCacheCoordinator

    return hasattr(HybridKVCacheCoordinator, "find_longest_cache_hit_per_group")


def _keeps_block_before_last() -> bool:
    """Whether a state is kept where a repeat of a prompt that ends with a block goes on.

    The scheduler gets this position from one function. Its answer for a prompt of two blocks with
    a draft head, where attention does without one of the two, distinguishes the releases.
    """
    from vllm.v1 import kv_cache_interface

    position = getattr(kv_cache_interface, "get_mamba_prefill_checkpoint_position", None)
    return position is not None and position(2, 1, True) == 1


def _find_hits_by_kind(coordinator: Any, request: Any) -> tuple[int, int]:
    """Tokens of a prompt that attention layers and Mamba layers have in the cache."""
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec

    _, hits = coordinator.find_longest_cache_hit_per_group(
        request.block_hashes, request.num_tokens - 1
    )
    specs = [group.kv_cache_spec for group in coordinator.kv_cache_config.kv_cache_groups]

    def least(kind: type[Any]) -> int:
        return min(
            (hit for spec, hit in zip(specs, hits, strict=True) if isinstance(spec, kind)),
            default=0,
        )

    return least(FullAttentionSpec), least(MambaSpec)


def _uncached(
    coordinator: Any, blocks: Sequence[Sequence[Any]], hit: int, *, with_state: bool = True
) -> int:
    """Tokens of a hit that groups do not have: keys that are missing, a state that is not there."""
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec

    missing = 0
    for manager, mine in zip(coordinator.single_type_managers, blocks, strict=True):
        needed = -(-hit // manager.block_size)
        if isinstance(manager.kv_cache_spec, FullAttentionSpec):
            missing += max(0, hit - len(mine) * manager.block_size)
        elif with_state and isinstance(manager.kv_cache_spec, MambaSpec) and needed:
            has_state = len(mine) >= needed and not mine[needed - 1].is_null
            missing += 0 if has_state else hit
    return missing


def _stored_amid(manager: Any, request: Any) -> int | None:
    """The token inside the step at which a state is stored besides, from 0.32.0 on."""
    found = getattr(manager, "_checkpoints", {}).get(request.request_id)
    return None if found is None else int(found[0])
