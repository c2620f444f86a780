"""What the scheduler says of a request, kept from its outputs alone."""

from types import SimpleNamespace

from hybridwatch_engine.probes.scheduled import ScheduledRequests, ScheduledRow


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
