"""The probe of a CPU's state update: each token of a step leaves the state that follows from it.

Every call of the update that has accepted counts is computed a second time, by a kernel that is
checked against a plain loop in 64 bits (``hybridwatch_engine_lab.studies.kernels``), on copies of
the slots that it may touch. What the engine left in those slots is then compared with that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe

_TOLERANCE: Final = 1e-2
"""Of the largest entry of a state: far above rounding, in bfloat16 too, and far below a token."""

NULL_BLOCK: Final = 0


@dataclass(slots=True)
class TokenStateCounts:
    """Totals since the probe was started.

    Attributes:
        token_states: State slots that updates with accepted counts could have touched.
        token_states_off: Of these, slots that held another state afterwards than they should.
    """

    token_states: int = 0
    token_states_off: int = 0


class TokenStatesProbe(CountingProbe[TokenStateCounts]):
    """Counts states that the update got wrong, while it is on; nothing without a CPU's update."""

    def __init__(self) -> None:
        super().__init__(TokenStateCounts)

    def _make_hooks(self) -> PatchSet:
        dispatch = import_module("vllm.model_executor.layers.mamba.ops.ssu_dispatch")
        backend = getattr(dispatch, "CPUSSUBackend", None)
        return PatchSet(*([] if backend is None else [Patch(backend, "__call__", self._see)]))

    def _see(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(backend: Any, state: Any, *tensors: Any, **named: Any) -> None:
            if named.get("num_accepted_tokens") is None:
                original(backend, state, *tensors, **named)
                return
            expected = self._watch(_expected, state, tensors, named)
            original(backend, state, *tensors, **named)
            self._watch(self._compare, state, expected)

        return call

    def _compare(self, state: Any, expected: tuple[Any, Any]) -> None:
        slots, states = expected
        self._counts.token_states += len(slots) - 1
        self._counts.token_states_off += _differing(state[slots], states)


def _expected(state: Any, tensors: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    """The slots that a call names, the null block first, and what they should hold after it."""
    import torch

    from hybridwatch_engine.cpu.kernels.install import advance

    sources, written = named["state_batch_indices"], named.get("dst_state_batch_indices")
    targets = sources if written is None else written
    null = sources.new_full((1,), NULL_BLOCK)
    slots = torch.cat([null, sources.flatten(), targets.flatten()]).unique().long()
    copies = state[slots].clone()
    places = {
        "state_batch_indices": torch.searchsorted(slots, sources.long()),
        "dst_state_batch_indices": torch.searchsorted(slots, targets.long()),
        "out": torch.empty_like(named["out"]),
    }
    advance(copies, *tensors, **{**named, **places})
    return slots, copies


def _differing(found: Any, expected: Any) -> int:
    """Slots, the null block left out, whose states are not the same but for rounding."""
    found, expected = found[1:].float().flatten(1), expected[1:].float().flatten(1)
    distance = (found - expected).abs().amax(dim=1)
    return int((distance > _TOLERANCE * expected.abs().amax(dim=1).clamp(min=1e-6)).sum())
