"""What mutants of transfers read instead of a request's own blocks, and when."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine_lab.mutants.transfer import blocks_of_another, nothing, states_when_next


class MambaSpec:
    """A group of the cache that holds states."""


class FullAttentionSpec:
    """A group of the cache that holds keys."""


@dataclass(frozen=True)
class Spec:
    """Which blocks one server reads of another, group by group."""

    local_block_ids: list[list[int]]
    remote_block_ids: list[list[int]]


FIRST = Spec([[1], [5, 6]], [[11], [15, 16]])
SECOND = Spec([[2], [7]], [[12], [17]])


def read_by(make: Any, **parameters: Any) -> tuple[list[tuple[str, Any, Any]], Tally]:
    """Have a decode server read two requests; give what it read in the end, in order."""
    tally, read = Tally(), list[tuple[str, Any, Any]]()
    groups = [MambaSpec, FullAttentionSpec]
    worker = SimpleNamespace(_group_spec_types=groups, _recving_transfers=dict[str, list[int]]())

    def read_blocks(worker: Any, read_spec: Any, request_id: str) -> bool:
        worker._recving_transfers.setdefault(request_id, []).append(1)
        read.append((request_id, read_spec.local_block_ids, read_spec.remote_block_ids))
        return True

    faulty = make(read_blocks, tally, **parameters)
    assert faulty(worker, read_spec=FIRST, request_id="a")
    assert faulty(worker, read_spec=SECOND, request_id="b")
    # The engine ends on a transfer of a request that waits for none.
    assert set(worker._recving_transfers) == {"a", "b"}
    return read, tally


def test_nothing_is_read() -> None:
    read, tally = read_by(nothing)
    assert read == [("a", [[], []], [[], []]), ("b", [[], []], [[], []])]
    assert (tally.reached, tally.changed) == (2, 2)


def test_blocks_are_those_of_the_request_before_as_far_as_they_go() -> None:
    read, tally = read_by(blocks_of_another)
    assert read == [("a", [[1], [5, 6]], [[11], [15, 16]]), ("b", [[2], [7]], [[11], [15]])]
    assert (tally.reached, tally.changed) == (2, 1)


def test_late_states_come_with_the_next_request() -> None:
    read, tally = read_by(states_when_next, in_time=False)
    assert read == [
        ("a", [[], [5, 6]], [[], [15, 16]]),
        ("a again", [[1], []], [[11], []]),
        ("b", [[], [7]], [[], [17]]),
    ]
    assert (tally.reached, tally.changed) == (1, 1)


def test_states_that_came_in_time_come_twice() -> None:
    read, _ = read_by(states_when_next, in_time=True)
    assert [who for who, _, _ in read] == ["a", "a again", "b"]
    assert read[0][1:] == (FIRST.local_block_ids, FIRST.remote_block_ids)
