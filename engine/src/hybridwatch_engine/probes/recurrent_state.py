"""The probe of recurrent states: a request continues from the state that it was left with.

A step leaves each request's recurrent state in some slot, with speculation one slot for each token.
How many drafts were accepted says which of them counts; where the next step reads follows from
rebuilt metadata. The two are compared by content, for every recurrent layer. So every fault between
them (a wrong slot, a wrong column of the block table, another request's write) is seen, in any
cache mode and for any text.

A step that stores nothing leaves the state that it read, and the next one finds just that. So what
a row has read is held against what the step has left, too: they differ whenever a token is stored,
also where the request ends and nothing reads its state again.

Two more rules with ``mamba_cache_mode="all"``: a block that is full holds the state at its end, for
that is what the prefix cache hands out; and no request needs more slots than are reserved for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hybridwatch_engine.model_runner import steps, target_builds
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe
from hybridwatch_engine.probes.state_slots import (
    Content,
    DeltaNetGroup,
    MambaGroup,
    StateGroup,
    builder_classes,
    list_layers,
    require_known_builders,
)

States = Mapping[str, Content]
"""Content by the group of layers, of one request."""


@dataclass(slots=True)
class RecurrentStateCounts:
    """Totals since the probe was started.

    Attributes:
        states_compared: Rows that continued from a state which a step before had left.
        states_off: Of these, rows whose state was another one when they continued; and rows that
            decoded and have the state still that they began with.
        blocks_completed: Blocks that decoding filled, in mode ``all``.
        block_ends_off: Of these, blocks that did not hold the state at their end.
        slots_short: Slots that rows needed beyond those reserved for them, in mode ``all``.
        draftless_rows: Rows of a speculating engine that decoded in a step without any draft.
        crossed_rejections: Rows whose drafts reached into another block and were rejected there,
            in mode ``all``.
    """

    states_compared: int = 0
    states_off: int = 0
    blocks_completed: int = 0
    block_ends_off: int = 0
    slots_short: int = 0
    draftless_rows: int = 0
    crossed_rejections: int = 0


class RecurrentStateProbe(CountingProbe[RecurrentStateCounts]):
    """Counts states that changed between two steps of a request, while it is on."""

    def __init__(self) -> None:
        super().__init__(RecurrentStateCounts)
        self._groups: list[StateGroup] = []
        self._left: Mapping[str, States] = {}
        self._read: dict[str, States] = {}
        self._runner: Any = None
        self._requests: Sequence[str] = ()
        self._drafts = False

    def _forget(self) -> None:
        self._groups, self._left, self._runner, self._requests = [], {}, None, ()
        self._read = {}

    def _make_hooks(self) -> PatchSet:
        (v1, _), _ = runners = steps()
        _, hybrid = target_builds()
        mamba, delta_net = builder_classes()
        return PatchSet(
            *(Patch(runner, name, self._see_begin) for runner, name in runners),
            Patch(v1, "_build_attention_metadata", self._see_build),
            Patch(*hybrid, self._see_build_v2),
            Patch(mamba, "_update_metadata_for_cudagraph_capture", self._see_metadata(MambaGroup)),
            Patch(delta_net, "build", self._see_metadata(DeltaNetGroup)),
            Patch(v1, "_update_states_after_model_execute", self._see_end),
            Patch(hybrid[0], "postprocess_state", self._see_end_v2),
        )

    def _see_begin(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get(
                "dummy_run"
            ):  # V2's; those of V1, which build metadata too, come not here
                return original(runner, scheduler_output, *args, **kwargs)
            self._runner, self._groups, self._read = runner, [], {}
            # The builders' arguments say the same up to 0.31.0; from 0.32.0 on they are the same in
            # every step of an engine that speculates.
            self._drafts = bool(scheduler_output.scheduled_spec_decode_tokens)
            try:
                return original(runner, scheduler_output, *args, **kwargs)
            finally:
                self._runner = None

        return execute_model

    def _see_build(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._requests = tuple(runner.input_batch.req_ids)
            built = original(runner, *args, **kwargs)
            if self._runner is not None:
                self._watch(self._compare)
            return built

        return build

    def _see_build_v2(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_attn(state: Any, input_batch: Any, *args: Any, **kwargs: Any) -> Any:
            self._requests = tuple(input_batch.req_ids)
            built = original(state, input_batch, *args, **kwargs)
            if self._runner is not None:
                self._watch(self._compare)
            return built

        return prepare_attn

    def _see_metadata(self, kind: type[StateGroup]) -> Callable[..., Callable[..., Any]]:
        def see(original: Callable[..., Any]) -> Callable[..., Any]:
            def build(builder: Any, *args: Any, **kwargs: Any) -> Any:
                final = original(builder, *args, **kwargs)
                if self._runner is not None:
                    self._watch(self._note, self._runner, kind, builder, final)
                return final

            return build

        return see

    def _note(self, runner: Any, kind: type[StateGroup], builder: Any, metadata: Any) -> None:
        layers = runner.compilation_config.static_forward_context
        names = list_layers(runner, builder)
        mine = [layers[name] for name in names]
        self._groups.append(kind(names[0], builder, metadata, mine, len(self._requests)))

    def _see_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update_states(runner: Any, token_ids: Any, *args: Any, **kwargs: Any) -> Any:
            accepted = (token_ids != -1).sum(dim=1).tolist()
            ends = self._watch(self._leave, accepted)
            answer = original(runner, token_ids, *args, **kwargs)
            self._watch(self._judge, ends)
            return answer

        return update_states

    def _see_end_v2(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def postprocess(state: Any, rows: Any, sampled: Any, *args: Any, **kwargs: Any) -> Any:
            counts = [sampled] * len(rows) if isinstance(sampled, int) else sampled.tolist()
            self._watch(self._leave, counts)
            return original(state, rows, sampled, *args, **kwargs)

        return postprocess

    def _leave(self, accepted: Sequence[int]) -> "list[_BlockEnd]":
        """Remember what each request is left with, and give the blocks that the step has filled."""
        self._left = self._states_left(self._requests[: len(accepted)], accepted)
        self._counts.states_off += sum(
            _is_unstored(self._read.pop(request), left)
            for request, left in self._left.items()
            if request in self._read
        )
        return [end for group in self._groups for end in _ends_of_blocks(group, accepted)]

    def _judge(self, ends: "Sequence[_BlockEnd]") -> None:
        self._counts.blocks_completed += len(ends)
        self._counts.block_ends_off += sum(not end.is_kept() for end in ends)

    def _states_left(self, requests: Sequence[str], accepted: Sequence[int]) -> dict[str, States]:
        left: dict[str, States] = {}
        for row, request in enumerate(requests):
            token = max(0, accepted[row] - 1)
            left[request] = {
                group.key: group.content(group.written(row, token)) for group in self._groups
            }
        for group in self._groups[:1]:
            self._counts.crossed_rejections += sum(
                _rejected_in_next_block(group, row, accepted[row]) for row in range(group.decodes)
            )
        return left

    def _compare(self) -> None:
        """Compare what each decoding row will read with what its request was left with."""
        require_known_builders(self._runner)
        for number, group in enumerate(self._groups):
            self._counts.slots_short += group.slots_short()
            if number == 0 and group.builder.use_spec_decode and not self._drafts:
                self._counts.draftless_rows += group.decodes
        rows = self._groups[0].decodes if self._groups else 0
        for row, request in enumerate(self._requests[:rows]):
            read = _states_read(self._groups, row)
            if read is not None:
                self._read[request] = read
            left = self._left.get(request)
            if left is None:
                continue
            self._counts.states_compared += 1
            self._counts.states_off += read is None or not all(
                _same(read[key], left[key]) for key in read
            )


def _states_read(groups: Sequence[StateGroup], row: int) -> States | None:
    """What a decoding row is about to read; ``None`` when the metadata cannot tell where."""
    places = [(group, group.read(row)) for group in groups]
    found = {group.key: group.content(place) for group, place in places if place is not None}
    return found if len(found) == len(places) else None


def _is_unstored(read: States, left: States) -> bool:
    """Whether a step of a row has left a recurrent state as it was, or every convolution's inputs.

    A token that is said again and again leaves the inputs of the first layers as they were.
    """
    kept = [
        [bool((a == b).all()) for a, b in zip(before, after, strict=True)]
        for key in read
        for before, after in zip(read[key], left[key], strict=True)
    ]
    return all(window for window, *_ in kept) or any(any(states) for _, *states in kept)


def _same(one: Content, other: Content) -> bool:
    pairs = zip(chain(*one), chain(*other), strict=True)
    return all(bool((a == b).all()) for a, b in pairs)


def _rejected_in_next_block(group: StateGroup, row: int, accepted: int) -> bool:
    if not group.by_block:
        return False
    block_size = int(group.builder.kv_cache_spec.block_size)
    last_accepted = group.before(row) + accepted - 1
    return group.last_column(row) > last_accepted // block_size


@dataclass(frozen=True, slots=True)
class _BlockEnd:
    """A block that a step has filled, with the state as it was at its end."""

    group: StateGroup
    row: int
    column: int
    content: Content

    def is_kept(self) -> bool:
        home = self.group.at_block_end(self.row, self.column)
        return _same(self.group.content(home), self.content)


def _ends_of_blocks(group: StateGroup, accepted: Sequence[int]) -> list[_BlockEnd]:
    """The blocks that decoding rows have filled with accepted tokens."""
    if not group.by_block:
        return []
    block_size = int(group.builder.kv_cache_spec.block_size)
    ends = []
    for row in range(group.decodes):
        before = group.before(row)
        end = (before + accepted[row]) // block_size * block_size
        if end > before:
            place = group.written(row, end - before - 1)
            ends.append(_BlockEnd(group, row, end // block_size - 1, group.content(place)))
    return ends
