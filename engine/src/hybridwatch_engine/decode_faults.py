"""Two planted faults of decode that are the same with graphs and without.

An engine that is compared with itself alone cannot show them; tokens beside those of another
engine, and beside those of an oracle outside of it, do.
"""

from collections.abc import Callable
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet

_KERNEL: Final = "selective_state_update"
_SHIFT: Final = 0.5
_BIAS: Final = 7
"""Place of ``dt_bias`` among the kernel's arguments; its state is the first."""


def _shifted(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(*args: Any, **kwargs: Any) -> Any:
        bias = args[_BIAS] + _SHIFT
        return original(*args[:_BIAS], bias, *args[_BIAS + 1 :], **kwargs)

    return update


def _unwritten(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(state: Any, *args: Any, **kwargs: Any) -> Any:
        before = state.clone()
        answer = original(state, *args, **kwargs)
        state.copy_(before)
        return answer

    return update


def shifted_decay() -> PatchSet:
    """Patches by which states decay too fast while tokens are made."""
    return _around_decode(_shifted)


def unwritten_state() -> PatchSet:
    """Patches by which no state is written while tokens are made."""
    return _around_decode(_unwritten)


def _around_decode(make: Callable[[Any], Any]) -> PatchSet:
    from vllm.model_executor.layers.mamba import mamba_mixer2

    return PatchSet(Patch(mamba_mixer2, _KERNEL, make))
