"""A planted fault: in each step the host reads one number from the device, as ``.item()`` does.

On a GPU the read waits until the device has done all that it was asked for, so what the host would
have prepared meanwhile comes after it.
"""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.model_runner import is_step, steps
from hybridwatch_engine.patch import Patch, PatchSet


def host_read() -> PatchSet:
    """Patches that read a number before each step of either model runner."""
    return PatchSet(*(Patch(*function, _reading) for function in steps()))


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    numbers: list[torch.Tensor] = []

    def execute_model(runner: Any, scheduled: Any, *args: Any, **named: Any) -> Any:
        if is_step(scheduled, named):
            if not numbers:
                numbers.append(torch.zeros((), device=runner.device))
            numbers[0].item()
        return original(runner, scheduled, *args, **named)

    return execute_model
