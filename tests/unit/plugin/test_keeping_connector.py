"""The connector that keeps blocks: what it saves of which steps, and what it says it can restore.

A package ``vllm`` of a few lines stands for the engine; the half beside the model is in the engine
tests (``reported/i42554-connector-hit``).
"""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.plugin.modules import stand_in

SIZE = 4
ATTENTION, MAMBA = 0, 1


class MambaSpec:
    block_size = SIZE


class Base:
    def __init__(self, config: Any, role: Any, cache: Any) -> None:
        del config, role
        self._kv_cache_config = cache


@pytest.fixture
def connector(monkeypatch):
    """One with an attention group and a Mamba group."""
    names = {"KVConnectorBase_V1": Base, "KVConnectorMetadata": object, "SupportsHMA": object}
    stand_in(monkeypatch, "vllm.distributed.kv_transfer.kv_connector.v1.base", **names)
    stand_in(monkeypatch, "vllm.v1.kv_cache_interface", MambaSpec=MambaSpec)
    monkeypatch.delitem(sys.modules, "hybridwatch_engine.keeping_connector", raising=False)
    module = importlib.import_module("hybridwatch_engine.keeping_connector")
    specs = (SimpleNamespace(block_size=SIZE), MambaSpec())
    groups = [SimpleNamespace(kv_cache_spec=spec) for spec in specs]
    yield module.KeepingConnector(None, None, SimpleNamespace(kv_cache_groups=groups))
    sys.modules.pop("hybridwatch_engine.keeping_connector", None)


def a_request(name: str, tokens: int) -> Any:
    """Two requests of one text; a block's hash is its number."""
    return SimpleNamespace(
        request_id=name,
        num_tokens=tokens,
        num_prompt_tokens=tokens,
        num_computed_tokens=0,
        block_hashes=list(range(tokens // SIZE)),
    )


def step(connector: Any, request: Any, tokens: int, *blocks: list[int]) -> Any:
    """Schedule so many tokens of a request, which gets these blocks of each group."""
    is_new = request.num_computed_tokens == 0
    if is_new:
        connector.get_num_new_matched_tokens(request, 0)
    new = [SimpleNamespace(req_id=request.request_id, block_ids=blocks)] if is_new else []
    old = SimpleNamespace(
        req_ids=[] if is_new else [request.request_id],
        new_block_ids=[] if is_new else [blocks],
        resumed_req_ids=set(),
    )
    moves = connector.build_connector_meta(
        SimpleNamespace(
            num_scheduled_tokens={request.request_id: tokens},
            scheduled_new_reqs=new,
            scheduled_cached_reqs=old,
        )
    )
    request.num_computed_tokens += tokens
    return moves


def test_keys_of_full_blocks_are_saved_and_the_state_at_a_steps_end(connector):
    request = a_request("a", 14)
    moves = step(connector, request, 8, [10, 11], [0, 21])
    assert moves.saves == [((ATTENTION, 0), 10), ((ATTENTION, 1), 11), ((MAMBA, 1), 21)]
    # The rest ends amid a block: its keys are full up to the third one, no state is at an end.
    moves = step(connector, request, 6, [12, 13], [22, 23])
    assert moves.saves == [((ATTENTION, 2), 12)]


def test_what_an_answer_adds_is_not_saved(connector):
    request = a_request("a", 7)
    assert step(connector, request, 7, [10, 11], [0, 20]).saves == [((ATTENTION, 0), 10)]
    assert step(connector, request, 1, [], []).saves == []


def test_a_prompt_is_restored_up_to_the_last_state_that_leaves_a_token_to_compute(connector):
    step(connector, a_request("a", 9), 8, [10, 11], [0, 21])
    assert connector.get_num_new_matched_tokens(a_request("b", 9), 0) == (8, False)
    assert connector.get_num_new_matched_tokens(a_request("c", 8), 0) == (0, False)
    assert connector.get_num_new_matched_tokens(a_request("d", 9), 4) == (4, False)
    assert connector.get_num_new_matched_tokens(a_request("e", 9), 8) == (0, False)


def test_it_is_put_into_the_blocks_that_the_request_got(connector):
    step(connector, a_request("a", 9), 8, [10, 11], [0, 21])
    other = a_request("b", 9)
    connector.get_num_new_matched_tokens(other, 4)
    blocks = SimpleNamespace(get_block_ids=lambda: ([10, 31, 32], [0, 41, 42]))
    connector.update_state_after_alloc(other, blocks, 4)
    other.num_computed_tokens = 8
    connector._requests["b"].blocks = [[10, 31, 32], [0, 41, 42]]
    moves = step(connector, other, 1, [], [])
    assert moves.loads == [((ATTENTION, 1), 31), ((MAMBA, 1), 41)]
    assert moves.saves == []


def test_a_reset_forgets_on_both_sides(connector):
    step(connector, a_request("a", 9), 8, [10, 11], [0, 21])
    assert connector.reset_cache()
    other = a_request("b", 9)
    assert connector.get_num_new_matched_tokens(other, 0) == (0, False)
    assert step(connector, other, 8, [10, 11], [0, 21]).forget
