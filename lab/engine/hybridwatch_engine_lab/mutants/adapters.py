"""Mutants of adapters (LoRA) that requests name."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ


def lost_in(original: Callable[..., Any], tally: Tally, *, layers: str) -> Callable[..., Any]:
    """Add no adapter's product in some layers. ``layers``: what their names contain."""

    def add_adapters(layer: Any, x: Any, output: Any) -> Any:
        if layers not in layer.base_layer.prefix:
            return original(layer, x, output)
        right = original(layer, x, output.clone())
        tally.count(changed=differ(output.reshape(right.shape), right))
        return output.reshape(right.shape)

    return add_adapters


def not_in_key(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Let the prefix cache know a block by its tokens, whatever adapter has made it."""

    def keys_of_adapter(request: Any) -> list[Any]:
        tally.count(changed=bool(original(request)))
        return []

    return keys_of_adapter
