"""The probe of the prefix cache: what is counted of lookups, and of states that begin to be kept.

A package ``vllm`` of a few lines stands for the engine: its cache answers what a test tells it to.
"""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine.probes.prefix_cache import PrefixCacheProbe
from hybridwatch_engine.scheduler_side import _answered_here_too

from tests.unit.plugin.modules import stand_in

SIZE = 4
"""Tokens of a block."""


class FullAttentionSpec: ...


class MambaSpec: ...


class Coordinator:
    """Two cache groups, one of each kind."""

    scheduler_block_size = SIZE
    attention_groups = ()

    def __init__(self) -> None:
        specs = (FullAttentionSpec(), MambaSpec())
        groups = [SimpleNamespace(kv_cache_spec=spec) for spec in specs]
        self.kv_cache_config = SimpleNamespace(kv_cache_groups=groups)
        self.single_type_managers = [
            SimpleNamespace(block_size=SIZE, kv_cache_spec=spec) for spec in specs
        ]
        self.alone = (0, 0)

    def find_longest_cache_hit_per_group(self, hashes: Any, length: int) -> Any:
        del hashes, length
        return ((), self.alone)


class KVCacheManager:
    """Tells a request what the test says."""

    def __init__(self) -> None:
        self.coordinator = Coordinator()
        self.blocks: Any = ([], [])
        self.hit = 0

    def get_computed_blocks(self, request: Any, max_cache_hit_length: int | None = None) -> Any:
        """As 0.33.0 has it; before, a request alone was given."""
        del request, max_cache_hit_length
        return SimpleNamespace(blocks=self.blocks), self.hit, 0

    def allocate_slots(self, request: Any, new: int, **named: Any) -> Any:
        """Keeps the states that the first step of a request reaches, what is restored included."""
        del named
        MambaManager([a_block() for _ in range(4)]).cache_blocks(request, new)
        return self.blocks


class BlockPool:
    def _maybe_evict_cached_block(self, block: Any) -> bool:
        return bool(block)


class MambaManager:
    """Keeps every full block of a request, in mode ``align``."""

    mamba_cache_mode = "align"
    block_size = SIZE

    def __init__(self, blocks: Any) -> None:
        self.num_cached_block: dict[str, int] = {}
        self.req_to_blocks = {"a": blocks}

    def cache_blocks(self, request: Any, num_tokens: int) -> None:
        self.num_cached_block[request.request_id] = num_tokens // SIZE


@pytest.fixture
def vllm(monkeypatch):
    """The modules that the probe asks for."""
    core = "vllm.v1.core"
    stand_in(monkeypatch, f"{core}.block_pool", BlockPool=BlockPool)
    stand_in(monkeypatch, f"{core}.kv_cache_coordinator", HybridKVCacheCoordinator=Coordinator)
    stand_in(monkeypatch, f"{core}.kv_cache_manager", KVCacheManager=KVCacheManager)
    stand_in(monkeypatch, f"{core}.single_type_kv_cache_manager", MambaManager=MambaManager)
    specs = {"FullAttentionSpec": FullAttentionSpec, "MambaSpec": MambaSpec}
    stand_in(monkeypatch, "vllm.v1.kv_cache_interface", **specs)


@pytest.fixture
def probe(vllm):
    """A probe that counts."""
    started = PrefixCacheProbe()
    started.start()
    yield started
    started.stop()


def a_request(name: str = "a", tokens: int = 10, **changes: Any) -> Any:
    keys: dict[str, Any] = {
        "request_id": name,
        "prompt_token_ids": list(range(tokens)),
        "num_prompt_tokens": tokens,
        "num_tokens": tokens,
        "num_computed_tokens": 0,
        "num_preemptions": 0,
        "block_hashes": [],
    }
    return SimpleNamespace(**{**keys, **changes})


def a_block(*, is_null: bool = False, is_kept: bool = True) -> Any:
    return SimpleNamespace(is_null=is_null, block_hash="hash" if is_kept else None)


def look_up(
    hit: int,
    alone: tuple[int, int],
    *requests: Any,
    blocks: Any = None,
    given: tuple[Any, ...] = (),
) -> None:
    """Look requests up in a cache that spares each ``hit`` tokens."""
    manager = KVCacheManager()
    manager.hit, manager.coordinator.alone = hit, alone
    whole = [a_block()] * (hit // SIZE)
    manager.blocks = (whole, whole) if blocks is None else blocks
    for request in requests:
        manager.get_computed_blocks(request, *given)


def test_whatever_a_release_gives_a_lookup_reaches_it(probe):
    look_up(4, (4, 4), a_request(), given=(None,))
    assert probe.stop()["prefix_tokens_hit"] == 4


def test_tokens_are_counted_for_both_kinds_of_layers(probe):
    look_up(4, (8, 4), a_request("a"), a_request("b", tokens=7))
    told = probe.stop()
    assert told["prefix_tokens_asked"] == 17
    assert told["prefix_tokens_hit"] == 8
    assert (told["prefix_tokens_attention"], told["prefix_tokens_mamba"]) == (16, 8)
    assert told["prefix_hit_uncached"] == 0


def test_a_request_that_waits_is_counted_once_as_it_was_looked_up_last(probe):
    look_up(0, (0, 0), a_request())
    look_up(4, (4, 4), a_request())
    told = probe.stop()
    assert (told["prefix_tokens_asked"], told["prefix_tokens_hit"]) == (10, 4)


def test_what_a_preempted_request_is_spared_is_no_prompt_of_anybodys(probe):
    look_up(4, (4, 4), a_request(num_preemptions=1))
    assert probe.stop()["prefix_tokens_asked"] == 0


@pytest.mark.parametrize(
    ("keys", "states", "uncached"),
    [
        (2, [a_block(is_null=True), a_block()], 0),
        (1, [a_block(is_null=True), a_block()], 4),  # keys of the second block are missing
        (2, [a_block(), a_block(is_null=True)], 8),  # no state at the end
        (2, [a_block()], 8),
    ],
)
def test_a_hit_that_some_layers_do_not_have_is_counted(probe, keys, states, uncached):
    look_up(8, (8, 8), a_request(), blocks=([a_block()] * keys, states))
    assert probe.stop()["prefix_hit_uncached"] == uncached


def keep_a_state_at(block: int) -> None:
    """Let the release say so of a prompt of two blocks: behind which of them, with a draft head.

    Releases before 0.30.0 are not asked; 0.30.0 and 0.31.0 say 0, later ones 1.
    """
    interface: Any = sys.modules["vllm.v1.kv_cache_interface"]
    answers = {(2, 1, True): block}
    interface.get_mamba_prefill_checkpoint_position = lambda *asked: answers[asked]


def repeated(probe: PrefixCacheProbe, tokens: int = 10, computed: int = 10) -> dict[str, Any]:
    """Ask for a prompt twice; the keys of two blocks are there, and no state."""
    look_up(0, (8, 0), a_request("a", tokens, num_computed_tokens=computed))
    look_up(0, (8, 0), a_request("b", tokens))
    told = probe.stop()
    return {name: told[name] for name in ("repeats", "repeats_missed")}


def test_a_repeat_that_finds_keys_and_no_state_has_missed_them(probe):
    assert repeated(probe) == {"repeats": 1, "repeats_missed": 8}


@pytest.mark.parametrize("kept", [None, 0])
def test_before_0_32_a_prompt_that_ends_with_a_block_is_no_such_repeat(probe, kept):
    if kept is not None:
        keep_a_state_at(kept)
    assert repeated(probe, tokens=12, computed=12) == {"repeats": 0, "repeats_missed": 0}


def test_a_prompt_that_ends_with_a_block_is_a_repeat_where_the_block_before_has_a_state(probe):
    keep_a_state_at(1)
    assert repeated(probe, tokens=12, computed=12) == {"repeats": 1, "repeats_missed": 8}


def test_a_prompt_that_is_being_computed_still_is_no_such_repeat(probe):
    assert repeated(probe, computed=8) == {"repeats": 0, "repeats_missed": 0}


def test_after_something_was_thrown_out_nothing_is_missed(probe):
    BlockPool()._maybe_evict_cached_block("full")
    assert repeated(probe) == {"repeats": 0, "repeats_missed": 0}


def kept(probe: PrefixCacheProbe, *steps: tuple[int, int], **changes: Any) -> tuple[int, int]:
    """States that a request's steps make reachable, and how many of them are wrong."""
    manager = MambaManager([a_block() for _ in range(4)])
    vars(manager).update(changes)
    for start, end in steps:
        manager.cache_blocks(a_request(num_computed_tokens=start), end)
    told = probe.stop()
    return told["states_cached"], told["cached_states_off"]


def test_states_at_the_ends_of_steps_are_right(probe):
    assert kept(probe, (0, 4), (4, 8), (8, 9)) == (2, 0)


def test_a_step_that_passes_the_end_of_a_block_keeps_a_state_of_its_middle(probe):
    assert kept(probe, (0, 6), (6, 10)) == (2, 2)


def test_a_block_in_which_no_state_was_left_is_no_wrong_one(probe):
    blocks = [a_block(is_null=True), a_block(), a_block(is_kept=False)]
    assert kept(probe, (0, 8), (8, 14), req_to_blocks={"a": blocks}) == (1, 0)


def test_a_state_that_is_stored_amid_a_step_is_right(probe):
    assert kept(probe, (0, 4), (4, 10), _checkpoints={"a": (8, 1)}) == (2, 0)


def test_a_state_that_is_kept_for_another_end_than_its_place_tells_is_right(probe):
    blocks = [a_block(is_null=True), a_block()]
    blocks[1].block_hash_num_tokens = 4
    changes = {"req_to_blocks": {"a": blocks}, "_checkpoints": {"a": (4, 1)}}
    assert kept(probe, (0, 10), **changes) == (1, 0)


def test_what_drafts_have_filled_was_copied_before_it_is_kept(probe):
    # The step from token 3 on had accepted drafts up to token 6; the next one makes it known.
    assert kept(probe, (3, 4), (6, 7)) == (1, 0)


def restored(probe: PrefixCacheProbe, external: int, keys: int = 1) -> dict[str, Any]:
    """A prompt whose first block of keys the engine has, and a connector so many tokens more."""
    blocks: Any = ([a_block()] * keys, [])
    look_up(4, (4, 0), request := a_request(), blocks=blocks)
    KVCacheManager().allocate_slots(
        request,
        10,
        num_new_computed_tokens=4,
        new_computed_blocks=SimpleNamespace(blocks=blocks),
        num_external_computed_tokens=external,
    )
    return probe.stop()


def test_a_state_that_a_connector_brings_is_neither_missing_nor_wrong(probe):
    told = restored(probe, 4)
    assert (told["external_tokens"], told["prefix_hit_uncached"]) == (4, 0)
    assert (told["states_cached"], told["cached_states_off"]) == (2, 0)


def test_without_a_connector_it_is_both(probe):
    told = restored(probe, 0)
    assert (told["external_tokens"], told["prefix_hit_uncached"]) == (0, 4)
    assert told["cached_states_off"] == 2


def test_keys_that_the_engine_was_to_have_are_missing_next_to_a_connector_too(probe):
    assert restored(probe, 4, keys=0)["prefix_hit_uncached"] == 4


def test_other_modes_keep_the_state_of_each_block(probe):
    assert kept(probe, (0, 6), (6, 10), mamba_cache_mode="all") == (0, 0)


def test_steps_that_compute_again_what_was_lost_are_counted_once(probe):
    for manager in (MambaManager([a_block()] * 4) for _ in range(2)):
        manager.cache_blocks(a_request(num_preemptions=1, num_tokens=10), 4)
        manager.cache_blocks(a_request(num_preemptions=1, num_tokens=10, num_computed_tokens=9), 9)
    assert probe.stop()["resumed_chunks"] == 1


def test_a_release_that_cannot_ask_one_kind_alone_leaves_those_counts_out(probe, monkeypatch):
    monkeypatch.delattr(Coordinator, "find_longest_cache_hit_per_group")
    look_up(4, (0, 0), a_request())
    told = probe.stop()
    assert told["prefix_tokens_hit"] == 4
    assert not {"prefix_tokens_attention", "prefix_tokens_mamba", "repeats_missed"} & set(told)


def test_the_scheduler_adds_its_counts_to_those_of_the_first_worker(vllm):
    call = _answered_here_too(lambda *_: [{"replays": 2}, {"replays": 1}])
    call(SimpleNamespace(), "hybridwatch_probe_start", args=("contract",))
    look_up(4, (4, 4), a_request())
    first, other = call(SimpleNamespace(), "hybridwatch_probe_stop", args=("contract",))
    assert (first["replays"], first["prefix_tokens_hit"]) == (2, 4)
    assert (other["replays"], other["prefix_tokens_hit"]) == (1, 0)


def test_what_the_scheduler_cannot_watch_is_said_once(vllm):
    call = _answered_here_too(lambda *_: [{"replays": 2, "unsupported": {"x": "why"}}])
    call(SimpleNamespace(), "hybridwatch_probe_start", args=("contract",))
    manager = KVCacheManager()
    del manager.coordinator.kv_cache_config
    manager.get_computed_blocks(a_request())
    (first,) = call(SimpleNamespace(), "hybridwatch_probe_stop", args=("contract",))
    assert first["replays"] == 2
    assert first["unsupported"]["x"] == "why"
    assert "kv_cache_config" in first["unsupported"]["repeats_missed"]


def test_other_probes_are_the_workers_alone(vllm):
    call = _answered_here_too(lambda *_: [{"seconds": []}])
    assert call(SimpleNamespace(), "hybridwatch_probe_stop", args=("host-sync",)) == [
        {"seconds": []}
    ]


@pytest.mark.parametrize("refused", [False, True])
def test_a_fix_of_the_scheduler_is_switched_where_the_scheduler_is(monkeypatch, refused):
    """The worker, which may be another process, has answered what can be said of it."""
    switched = []

    def switch(*wish: object) -> None:
        switched.append(wish)
        if refused:
            raise ValueError("cannot be taken out")

    board = SimpleNamespace(switch=switch)
    monkeypatch.setattr("hybridwatch_engine.scheduler_side.switchboard", lambda: board)
    call = _answered_here_too(lambda *_: [{"a-fix": "applied"}])
    answers = call(SimpleNamespace(), "hybridwatch_switch", args=("a-fix", True))
    assert answers == [{"a-fix": "applied"}]
    assert switched == [("a-fix", True)]
