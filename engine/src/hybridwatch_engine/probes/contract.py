"""The contract of replays: what a graph reads is what the scheduler says of the same batch.

It knows no bug by name. A graph reads the buffers it was captured over, so before each replay every
field of those is held against the scheduler's outputs alone (``scheduled``): the rows of requests
must be theirs, padded rows must be harmless, with the null block for a state and no length, and a
dummy run, whatever lengths it makes up, must keep no key and no state. Metadata that the runner has
just built would be no second opinion: model runner V2 writes them in place, and a row that was not
cleared is then the same in both.

What is known by name is counted as well: padded rows that say "prefilling" while Mamba's metadata
are built, prompts in a graph of decodes, and the occasions. A rule that had none to break proves
nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hybridwatch_engine.model_runner import decode_length, is_v2, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe, UnsupportedError
from hybridwatch_engine.probes.draft_lengths import DraftLengths
from hybridwatch_engine.probes.scheduled import (
    ReplayedGroup,
    ScheduledRequests,
    ScheduledRow,
    find_groups,
    numbers,
)
from hybridwatch_engine.probes.state_slots import builder_classes, require_known_builders
from hybridwatch_engine.replays import BUILT, REPLAYS, Metadata, Replay

_NO_STATE: Final = (0, -1)
"""State slots that no request has: the null block, and the mark of a padded row."""

_NO_KEY: Final = -1
"""Slot of a token whose key is not kept."""


@dataclass(slots=True)
class ContractCounts:
    """Totals since the probe was started.

    Attributes:
        replays: FULL graphs replayed for requests.
        padded_replays: Of these, with at least one padded row.
        padded_rows: Rows that were padding, over all replays.
        padded_rows_prefilling: Of these, rows that said "prefilling".
        slots: State slots that replays were about to use.
        slots_off_block_table: Of these, slots that are not the request's; of a padded row, any.
        prefills_in_decode_graph: Rows that the Mamba metadata of a replayed batch calls prefills,
            in a graph captured without.
        one_token_extends: Rows that computed a part of their prompt in a batch shaped like a
            decode, with earlier state; that is one token, or with drafts 1 + drafts.
        first_tokens: Such rows without earlier state.
        lone_prompts: Prompts of one token that came while others were served.
        drafts_before_state: Rows that got drafts before anything of them was computed. Recurrent
            layers compute such a row as a prompt and keep the state behind its last draft.
        dummy_replays: FULL graphs replayed by dummy runs.
        blocks_in_dummy_runs: State slots other than the null block that these used.
        replay_off_block_tables: Rows of attention that read other blocks.
        replay_off_slot_mappings: Tokens whose key goes elsewhere.
        replay_off_seq_lens: Rows of another length, those of drafts' graphs included.
        replay_off_query_starts: Rows that begin elsewhere in the batch.
        replay_off_accepted: Rows that go on behind another number of accepted drafts.
        replay_off_prompts: Rows that compute more of a prompt than a decode graph can.
        replay_off_initial_states: Rows without earlier state, in a graph that reads one.
        replay_off_chunks: Replays whose graph was captured with other prompts than the batch has.
        decoding_rows: Steps in which nothing but answers was computed, by how many requests.
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
    lone_prompts: int = 0
    drafts_before_state: int = 0
    dummy_replays: int = 0
    blocks_in_dummy_runs: int = 0
    replay_off_block_tables: int = 0
    replay_off_slot_mappings: int = 0
    replay_off_seq_lens: int = 0
    replay_off_query_starts: int = 0
    replay_off_accepted: int = 0
    replay_off_prompts: int = 0
    replay_off_initial_states: int = 0
    replay_off_chunks: int = 0
    decoding_rows: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _ContractStep:
    """What is known of the step that runs.

    Attributes:
        batch: Requests by id, as scheduled; ``None`` in a dummy run.
        flags: ``is_prefilling`` as the builder of recurrent metadata received it.
    """

    runner: Any
    batch: dict[str, ScheduledRow] | None
    flags: Any = None

    def rows(self) -> list[ScheduledRow] | None:
        """Requests in the order of the batch; ``None`` when one was there before the probe."""
        if self.batch is None:
            return []
        names = BUILT.requests if is_v2(self.runner) else self.runner.input_batch.req_ids
        rows = [self.batch[name] for name in names if name in self.batch]
        return rows if len(rows) == len(names) else None


class ContractProbe(CountingProbe[ContractCounts]):
    """Counts broken rules while it is on; either model runner."""

    def __init__(self) -> None:
        super().__init__(ContractCounts)
        self._requests = ScheduledRequests()
        self._drafts = DraftLengths()
        self._step: _ContractStep | None = None

    def start(self) -> None:
        """Count from zero."""
        super().start()
        if self._see_replay not in REPLAYS.observers:
            REPLAYS.observers.append(self._see_replay)
            REPLAYS.draft_observers.append(self._see_draft)

    def stop(self) -> dict[str, Any]:
        """Stop counting and return the counts."""
        if self._see_replay in REPLAYS.observers:
            REPLAYS.observers.remove(self._see_replay)
            REPLAYS.draft_observers.remove(self._see_draft)
        return super().stop()

    def _forget(self) -> None:
        self._requests, self._step = ScheduledRequests(), None
        self._drafts = DraftLengths()

    def _make_hooks(self) -> PatchSet:
        mamba, delta_net = builder_classes()
        runners = steps()
        return PatchSet(
            *(Patch(runner, name, self._see_step) for runner, name in runners),
            *(Patch(runner, "_dummy_run", self._see_dummy_run) for runner, _ in runners),
            Patch(mamba, "_compute_common_metadata", self._see_common),
            Patch(delta_net, "build", self._see_delta_net),
        )

    def _see_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("dummy_run"):
                self._watch(self._begin, runner, output)
            return original(runner, output, *args, **kwargs)

        return execute_model

    def _see_dummy_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_run(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._watch(self._begin, runner, None)
            return original(runner, *args, **kwargs)

        return dummy_run

    def _begin(self, runner: Any, output: Any) -> None:
        require_known_builders(runner)
        config = runner.vllm_config
        if config.scheduler_config.async_scheduling and config.speculative_config is not None:
            raise UnsupportedError(
                "a scheduler that runs ahead of drafts does not know yet how long a request is"
            )
        batch = None if output is None else self._requests.step(output)
        if batch is not None:
            most = runner.vllm_config.model_config.max_model_len
            wrong = self._drafts.count_wrong(output, batch, most)
            self._counts.replay_off_seq_lens += wrong
        self._step = _ContractStep(runner, batch)
        self._count_rows(decode_length(runner), list((batch or {}).values()))

    def _count_rows(self, decode: int, rows: Sequence[ScheduledRow]) -> None:
        """Count decodes by size, drafts too early, and prompts in a batch shaped like a decode."""
        if rows and all(row.decodes and row.computed >= row.prompt for row in rows):
            sizes, size = self._counts.decoding_rows, str(len(rows))
            sizes[size] = sizes.get(size, 0) + 1
        new = [row for row in rows if row.computed == 0]
        self._counts.lone_prompts += sum(row.prompt == 1 for row in new if len(rows) > 1)
        self._counts.drafts_before_state += sum(row.drafts > 0 for row in new)
        if all(row.tokens == decode for row in rows):
            prompts = [row for row in rows if row.computed < row.prompt]
            first = sum(row.computed == 0 for row in prompts)
            self._counts.first_tokens += first
            self._counts.one_token_extends += len(prompts) - first

    def _see_common(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compute(builder: Any, common: Any, **kwargs: Any) -> Any:
            self._watch(self._note_flags, common)
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
            self._watch(self._note_flags, common_attn_metadata)
            return original(builder, common_prefix_len, common_attn_metadata, *args, **kwargs)

        return build

    def _note_flags(self, common: Any) -> None:
        if self._step is not None:
            self._step.flags = common.is_prefilling

    def _see_draft(self, reads: Metadata, later: bool) -> None:
        self._watch(self._check_draft, reads, later)

    def _check_draft(self, reads: Metadata, later: bool) -> None:
        """Hold the lengths of a draft's graph; the first draft is of the target's own rows."""
        rows = None if self._step is None else self._step.rows()
        if not rows:
            return  # begun before the probe was on, or a dummy run
        found = next((read for one in reads.values() if (read := numbers(one, "seq_lens"))), [])
        if later:
            # A graph lengthens its padded rows too, which nothing is made of.
            self._drafts.note(BUILT.requests, found)
        else:
            wrong = _differ(found, [row.length for row in rows], 0)
            self._counts.replay_off_seq_lens += wrong

    def _see_replay(self, replay: Replay) -> None:
        self._watch(self._check, replay)

    def _check(self, replay: Replay) -> None:
        step = self._step
        rows = None if step is None else step.rows()
        if step is None or rows is None:
            return  # begun before the probe was on
        groups = find_groups(step.runner, replay)
        if not rows:
            self._counts.dummy_replays += 1
            for group in groups:
                self._check_dummy(group)
            return
        if step.flags is None:
            raise UnsupportedError("a graph is replayed on metadata that no known builder has made")
        self._check_kind(replay, rows)
        self._check_padding(step.flags, len(rows))
        for group in groups:
            self._check_lengths(group.reads, rows)
            self._check_keys(group, rows)
            self._check_states(group, rows)

    def _check_padding(self, flags: Any, rows: int) -> None:
        counts, padded = self._counts, int(flags.shape[0]) - rows
        counts.replays += 1
        counts.padded_replays += padded > 0
        counts.padded_rows += padded
        counts.padded_rows_prefilling += int(flags[rows:].sum())

    def _check_kind(self, replay: Replay, rows: Sequence[ScheduledRow]) -> None:
        """A graph that was captured without prompts decodes whatever it is given."""
        counts, name = self._counts, replay.recurrent[0]
        reads, fresh = replay.reads[name], replay.fresh[name]
        if reads.num_prefills:
            counts.replay_off_chunks += not _same_prompts(reads, fresh)
            return
        counts.prefills_in_decode_graph += fresh.num_prefills
        counts.replay_off_initial_states += sum(row.computed == 0 for row in rows)
        counts.replay_off_prompts += sum(row.computed > 0 and not row.decodes for row in rows)

    def _check_lengths(self, reads: Any, rows: Sequence[ScheduledRow]) -> None:
        starts = [0]
        for row in rows:
            starts.append(starts[-1] + row.tokens)
        # Padded rows have no length, and begin where the last request ends.
        lengths = _differ(numbers(reads, "seq_lens"), [row.length for row in rows], 0)
        self._counts.replay_off_seq_lens += lengths
        for name in ("query_start_loc", "query_start_loc_d"):
            found = numbers(reads, name)
            self._counts.replay_off_query_starts += _differ(found, starts, starts[-1])

    def _check_keys(self, group: ReplayedGroup, rows: Sequence[ScheduledRow]) -> None:
        for read, row in zip(group.block_table(), rows, strict=False):
            right = group.blocks(row)
            self._counts.replay_off_block_tables += read[: len(right)] != right
        found = numbers(group.reads, "slot_mapping")
        if found:
            keys = [slot for row in rows for slot in row.slots(group.number, group.whole)]
            self._counts.replay_off_slot_mappings += _differ(found, keys, _NO_KEY)

    def _check_states(self, group: ReplayedGroup, rows: Sequence[ScheduledRow]) -> None:
        counts, used = self._counts, group.state_slots()
        for read, row in zip(used, rows, strict=False):
            right = group.states(row)
            counts.slots += len(right)
            counts.slots_off_block_table += _differ(read[: len(right)], right)
        padded = [slot for read in used[len(rows) :] for slot in read]
        counts.slots += len(padded)
        counts.slots_off_block_table += sum(slot not in _NO_STATE for slot in padded)
        if used:
            accepted = numbers(group.reads, "num_accepted_tokens")
            for read_count, row in zip(accepted, rows, strict=False):
                counts.replay_off_accepted += read_count not in group.accepted(row)

    def _check_dummy(self, group: ReplayedGroup) -> None:
        slots = [slot for read in group.state_slots() for slot in read]
        self._counts.blocks_in_dummy_runs += sum(slot not in _NO_STATE for slot in slots)
        kept = numbers(group.reads, "slot_mapping")
        self._counts.replay_off_slot_mappings += _differ(kept, [], _NO_KEY)


def _differ(found: Sequence[int], right: Sequence[int], beyond: int | None = None) -> int:
    """Count the places that differ; past the end of what is right, those that are not ``beyond``.

    What metadata do not have at all is found as nothing, and differs nowhere.
    """
    wanted = [*right, *[beyond] * (len(found) - len(right))]
    return sum(one != other for one, other in zip(found, wanted, strict=False))


def _same_prompts(reads: Any, fresh: Any) -> bool:
    """Whether the prompt part of two metadata is the same; the names of its tensors end in _p."""
    if reads.num_prefills != fresh.num_prefills:
        return False
    names = [name for name in vars(reads) if name.endswith("_p")]
    return all(numbers(reads, name) == numbers(fresh, name) for name in names)
