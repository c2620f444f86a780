"""The contract probe of model runner V2: metadata speaks of no longer sequence than the batch has.

``max_seq_len`` is how far an attention backend may have to read: to the end of the longest
sequence of the batch for the target, and as many tokens further as there are speculative steps for
the draft, never behind the longest sequence that the engine takes. What goes beyond is counted in
tokens, exactly, each time metadata is built. How long a sequence is the host knows from above only:
drafts that will be rejected count until the device reports them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hybridwatch_engine.model_runner import draft_build, target_builds
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe


@dataclass(slots=True)
class MaxSeqLenCounts:
    """Totals since the probe was started.

    Attributes:
        target_metadata_builds: Times the target's metadata was built.
        max_seq_len_excess_target: Tokens beyond the batch's longest sequence, over all of these.
        draft_metadata_builds: Times the draft's metadata was built; of the first draft of a step it
            is the target's.
        max_seq_len_excess_draft: Tokens beyond what the drafts can reach, over all of these.
    """

    target_metadata_builds: int = 0
    max_seq_len_excess_target: int = 0
    draft_metadata_builds: int = 0
    max_seq_len_excess_draft: int = 0


@dataclass(frozen=True, slots=True)
class _Need:
    """How far the metadata that is being built must reach.

    Attributes:
        model: Whose metadata it is.
        tokens: The longest sequence it must speak of.
    """

    model: Literal["target", "draft"]
    tokens: int


class MaxSeqLenProbe(CountingProbe[MaxSeqLenCounts]):
    """Counts tokens beyond the longest sequence, while it is on."""

    def __init__(self) -> None:
        super().__init__(MaxSeqLenCounts)
        self._longest = 0  # sequence of the batch that the target's metadata was last built for
        self._need: _Need | None = None

    def _forget(self) -> None:
        self._need = None

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.worker.gpu import attn_utils

        return PatchSet(
            *(Patch(*function, self._see_target) for function in target_builds()),
            Patch(*draft_build(), self._see_draft),
            # Innermost, so that a fix has changed the metadata before.
            Patch(attn_utils, "CommonAttentionMetadata", self._see_metadata),
        )

    def _see_target(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare_attn(state: Any, *args: Any, **kwargs: Any) -> Any:
            self._watch(self._expect_target, *args, **kwargs)
            return original(state, *args, **kwargs)

        return prepare_attn

    def _expect_target(
        self, input_batch: Any, *_: Any, for_capture: bool = False, **__: Any
    ) -> None:
        lengths = input_batch.seq_lens_cpu_upper_bound[: input_batch.num_reqs]
        self._longest = int(lengths.max())
        # A graph is captured for any batch, so that it must speak of the longest there can be. A
        # dummy run that replays one builds the same; its drafts reach no further than its batch.
        self._need = None if for_capture else _Need("target", self._longest)

    def _see_draft(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def build(speculator: Any, *args: Any, **kwargs: Any) -> Any:
            self._watch(self._expect_draft, speculator)
            return original(speculator, *args, **kwargs)

        return build

    def _expect_draft(self, speculator: Any) -> None:
        reach = self._longest + speculator.num_speculative_steps
        self._need = _Need("draft", min(reach, speculator.max_model_len))

    def _see_metadata(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def make(*values: Any, **fields: Any) -> Any:
            # One for each group of the cache, all of the same batch: the first speaks for them.
            if self._need is not None:
                self._watch(self._count, self._need, **fields)
                self._need = None
            return original(*values, **fields)

        return make

    def _count(self, need: _Need, *, max_seq_len: int, **_: Any) -> None:
        counts, excess = self._counts, max(0, max_seq_len - need.tokens)
        if need.model == "target":
            counts.target_metadata_builds += 1
            counts.max_seq_len_excess_target += excess
        else:
            counts.draft_metadata_builds += 1
            counts.max_seq_len_excess_draft += excess
