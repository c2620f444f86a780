"""Each field that a graph reads is held against the scheduler, and counted by name where wrong."""

from copy import deepcopy
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from hybridwatch_engine.probes import contract
from hybridwatch_engine.probes.draft_lengths import DraftLengths
from hybridwatch_engine.probes.scheduled import ScheduledRequests, ScheduledRow
from hybridwatch_engine.replays import BUILT, Replay


def output(*, new=(), cached=(), tokens=None, drafts=None, finished=(), resumed=()):
    """A scheduler's output: ``cached`` are requests with their new blocks and computed tokens."""
    names, blocks, computed = zip(*cached, strict=True) if cached else ((), (), ())
    return SimpleNamespace(
        finished_req_ids=set(finished),
        scheduled_new_reqs=new,
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=names,
            new_block_ids=blocks,
            num_computed_tokens=computed,
            resumed_req_ids=set(resumed),
        ),
        scheduled_spec_decode_tokens=drafts or {},
        num_scheduled_tokens=tokens or {},
    )


def new(name, blocks, prompt=20, computed=0):
    return SimpleNamespace(
        req_id=name, block_ids=blocks, num_computed_tokens=computed, prompt_token_ids=[1] * prompt
    )


def test_a_request_keeps_its_blocks_and_gets_more():
    requests = ScheduledRequests()
    first = requests.step(output(new=[new("a", ([3], [7]))], tokens={"a": 16}))
    assert first == {"a": ScheduledRow(((3,), (7,)), computed=0, prompt=20, tokens=16)}
    second = requests.step(output(cached=[("a", ([4], []), 16)], tokens={"a": 4}))
    assert second == {"a": ScheduledRow(((3, 4), (7,)), computed=16, prompt=20, tokens=4)}
    assert second["a"].slots(0, 16) == [64, 65, 66, 67]
    assert not second["a"].decodes
    third = requests.step(output(cached=[("a", None, 20)], tokens={"a": 1}))
    assert third["a"].decodes


def test_what_was_rejected_is_not_accepted():
    requests = ScheduledRequests()
    requests.step(output(new=[new("a", ([3],))], tokens={"a": 20}))
    drafts = {"a": [5, 6, 7]}
    drafted = requests.step(output(cached=[("a", None, 20)], tokens={"a": 4}, drafts=drafts))
    assert drafted["a"].accepted == 1
    assert drafted["a"].decodes
    assert drafted["a"].length == 24
    after = requests.step(output(cached=[("a", None, 22)], tokens={"a": 1}))
    assert after["a"].accepted == 2  # of three drafts two were rejected


def test_a_resumed_request_has_the_blocks_that_it_gets_now():
    requests = ScheduledRequests()
    requests.step(output(new=[new("a", ([3],))], tokens={"a": 20}))
    resumed = requests.step(output(cached=[("a", ([9, 8],), 0)], resumed="a", tokens={"a": 21}))
    assert resumed["a"] == ScheduledRow(((9, 8),), computed=0, prompt=20, tokens=21)


def test_a_request_that_was_there_before_is_left_out_and_one_that_is_done_forgotten():
    requests = ScheduledRequests()
    assert requests.step(output(cached=[("a", None, 20)], tokens={"a": 1})) == {}
    requests.step(output(new=[new("b", ([3],))], tokens={"b": 20}))
    requests.step(output(finished="b"))
    assert requests.step(output(cached=[("b", None, 20)], tokens={"b": 1})) == {}


def count_wrong(read, output_after, computed=22, most=100):
    lengths = DraftLengths()
    for of_row in zip(*read.values(), strict=True):
        lengths.note(read, of_row)
    batch = {name: ScheduledRow(((3,),), computed=computed) for name in ("a", "b")}
    return lengths.count_wrong(output_after, batch, most)


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        # Of 24 tokens two were rejected: the first draft had 22, those after it one more each.
        ({"a": (23, 24), "b": (23, 24)}, 0),
        ({"a": (23, 24), "b": (25, 26)}, 2),
        ({"a": (1, 1), "b": (23, 24)}, 2),
        ({"a": (23, 23), "b": (23, 24)}, 1),
    ],
)
def test_lengths_of_drafts_are_held_once_it_is_known_how_many_were_taken(read, wrong):
    going_on = output(cached=[("a", None, 22), ("b", None, 22)])
    assert count_wrong(read, going_on) == wrong
    assert count_wrong(read, output(finished="ab")) == 0
    assert count_wrong(read, output(cached=[("a", None, 0)], resumed="ab")) == 0


def test_drafts_end_where_a_request_has_no_room_left():
    assert count_wrong({"a": (23, 23), "b": (23, 23)}, output(), most=23) == 0


# Two requests that decode and a padded row, in blocks of 16: attention has group 0, Mamba group 1.
ROWS = {
    "a": ScheduledRow(((3, 4), (7,)), computed=20, prompt=20, tokens=1, accepted=1),
    "b": ScheduledRow(((5,), (8,)), computed=9, prompt=4, tokens=1, accepted=1),
}
RIGHT = {
    "attention": SimpleNamespace(
        block_table=np.array([[3, 4], [5, 0], [0, 0]]),
        slot_mapping=np.array([68, 89, -1]),
        seq_lens=np.array([21, 10, 0]),
        query_start_loc=np.array([0, 1, 2, 2]),
    ),
    "mamba": SimpleNamespace(
        num_prefills=0,
        num_decodes=3,
        state_indices_tensor_d=np.array([[7], [8], [0]]),
        num_accepted_tokens=np.array([1, 1, 1]),
        seq_lens=np.array([21, 10, 0]),
        query_start_loc_d=np.array([0, 1, 2, 2]),
    ),
}
GROUPS = [
    SimpleNamespace(layer_names=[name], kv_cache_spec=SimpleNamespace(block_size=16))
    for name in RIGHT
]
RUNNER = SimpleNamespace(
    req_states=(),
    block_tables=SimpleNamespace(block_sizes=[16, 16]),
    kv_cache_config=SimpleNamespace(kv_cache_groups=GROUPS),
    vllm_config=SimpleNamespace(cache_config=SimpleNamespace(mamba_cache_mode="none")),
)


@pytest.fixture
def broken(monkeypatch):
    """The counters that a replay raises: of a batch, or of a dummy run."""

    def count(reads, batch=ROWS, flags=(False, False, False), fresh=RIGHT):
        monkeypatch.setattr(BUILT, "requests", tuple(batch or ()))
        probe = contract.ContractProbe()
        probe._step = contract._ContractStep(RUNNER, batch, np.array(flags))
        probe._check(Replay(reads, fresh, ("mamba",)))
        raised = asdict(probe._counts)
        occasions = ("replays", "padded_replays", "padded_rows", "slots", "dummy_replays")
        return {name: n for name, n in raised.items() if n and name not in occasions}

    return count


def test_a_replay_of_what_the_scheduler_says_breaks_nothing(broken):
    assert broken(RIGHT) == {}


@pytest.mark.parametrize(
    ("layer", "field", "place", "value", "counter"),
    [
        ("attention", "block_table", (0, 1), 5, "replay_off_block_tables"),
        ("attention", "slot_mapping", 0, 67, "replay_off_slot_mappings"),
        ("attention", "slot_mapping", 2, 0, "replay_off_slot_mappings"),
        ("attention", "seq_lens", 1, 11, "replay_off_seq_lens"),
        ("mamba", "seq_lens", 2, 40, "replay_off_seq_lens"),
        ("attention", "query_start_loc", 1, 2, "replay_off_query_starts"),
        ("mamba", "query_start_loc_d", 3, 3, "replay_off_query_starts"),
        ("mamba", "state_indices_tensor_d", (0, 0), 8, "slots_off_block_table"),
        ("mamba", "state_indices_tensor_d", (2, 0), 7, "slots_off_block_table"),
        ("mamba", "num_accepted_tokens", 1, 2, "replay_off_accepted"),
    ],
)
def test_a_wrong_field_is_counted_as_its_own(broken, layer, field, place, value, counter):
    wrong = deepcopy(RIGHT)
    getattr(wrong[layer], field)[place] = value
    assert broken(wrong) == {counter: 1}


@pytest.mark.parametrize(
    ("changed", "counter"),
    [
        ({"computed": 0, "tokens": 1}, "replay_off_initial_states"),
        ({"computed": 18, "tokens": 3}, "replay_off_prompts"),
    ],
)
def test_a_prompt_in_a_graph_of_decodes_is_counted(broken, changed, counter):
    row = ScheduledRow(((3, 4), (7,)), prompt=20, **changed)
    assert broken(RIGHT, {**ROWS, "a": row})[counter] == 1


def test_a_prompt_that_is_fresh_alone_and_a_flag_behind_the_rows_are_counted(broken):
    fresh = deepcopy(RIGHT)
    fresh["mamba"].num_prefills = 2
    assert broken(RIGHT, fresh=fresh) == {"prefills_in_decode_graph": 2}
    assert broken(RIGHT, flags=(False, False, True)) == {"padded_rows_prefilling": 1}


def test_a_graph_that_was_captured_with_other_prompts_is_counted(broken):
    reads = deepcopy(RIGHT)
    reads["mamba"].num_prefills = 1
    assert broken(reads) == {"replay_off_chunks": 1}


def test_a_dummy_run_keeps_no_state_and_no_key(broken):
    assert broken(RIGHT, batch=None) == {"blocks_in_dummy_runs": 2, "replay_off_slot_mappings": 2}
    harmless = deepcopy(RIGHT)
    harmless["mamba"].state_indices_tensor_d[:] = 0
    harmless["attention"].slot_mapping[:] = -1
    assert broken(harmless, batch=None) == {}


def test_drafts_of_a_row_that_nothing_was_computed_of_are_counted():
    """A row that goes on, a prompt of one token padded with three drafts, and one without."""
    probe = contract.ContractProbe()
    decode = ScheduledRow(((3,), (7,)), computed=20, prompt=20, tokens=4, drafts=3)
    padded = ScheduledRow(((4,), (8,)), computed=0, prompt=1, tokens=4, drafts=3)
    plain = ScheduledRow(((5,), (9,)), computed=0, prompt=1, tokens=1)
    probe._count_rows(4, [decode, padded])
    probe._count_rows(4, [decode, plain])
    probe._count_rows(4, [plain])
    counts = probe._counts
    assert (counts.drafts_before_state, counts.lone_prompts) == (1, 2)


def a_row(computed, prompt=4, tokens=1):
    return ScheduledRow(((3,),), computed=computed, prompt=prompt, tokens=tokens)


def test_sizes_of_batches_that_do_nothing_but_decode_are_counted():
    probe = contract.ContractProbe()
    answers = [a_row(4), a_row(9), a_row(5)]
    for rows in (answers, answers[:2], answers, [], [*answers, a_row(0, tokens=4)], [a_row(3)]):
        probe._count_rows(1, rows)
    assert probe._counts.decoding_rows == {"3": 2, "2": 1}
